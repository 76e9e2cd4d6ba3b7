import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { startCounterApi } from '../support/counter-api.ts';

const rules = 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 2 } }]';
const token = 'tgk_verifier';

interface Reply {
  readonly status?: number;
  readonly body: unknown;
}

/** The endpoint of the auth server, which is another service, with the replies of its contract. */
async function startVerifier(t: Test, replies: Readonly<Record<string, Reply>>) {
  const requests: { readonly credential: string; readonly address: string }[] = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request));
    requests.push(body);
    const isOurs =
      request.url === '/auth/admin/credentials/verify' && request.headers.authorization === `Bearer ${token}`;
    const { status = 200, body: reply } = replies[body.credential] ?? {
      body: { valid: false, code: 'invalid_api_key' },
    };
    response.writeHead(isOurs ? status : 403).end(JSON.stringify(reply));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return { url: `http://127.0.0.1:${port}/auth`, requests };
}

const verified = (...admin_scopes: string[]): Reply => ({
  body: {
    valid: true,
    code: 'ok',
    administrator: { kind: 'administrator', id: 'an id', name: 'ada@example.com', admin_scopes },
  },
});

t.test('credentials of the auth server have the rights of their admin scopes', async (t) => {
  const { url, requests } = await startVerifier(t, {
    tgk_reader: verified('limits:read'),
    tgk_writer: verified('limits:write'),
    tgk_other: verified('users:write'),
    tgk_broken: { status: 500, body: {} },
    tgk_odd: { body: { valid: true } },
  });
  const { base, logLines } = await startCounterApi(t, {
    rules: { 'shop.yaml': rules },
    env: { ADMIN_KEYS_URL: url, ADMIN_KEYS_TOKEN: token },
  });
  const body = JSON.stringify({
    domain: 'shop',
    descriptors: [{ entries: [{ key: 'user', value: 'ann' }] }],
  });
  const call = async (path: string, key: string, sent = body) => {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${base}${path}`, { method: 'POST', headers, body: sent });
    // Parsed boundary: replies are JSON objects.
    const { code } = (await response.json()) as { readonly code?: string };
    return [response.status, code];
  };
  const [peek, reset] = ['/v1/counters/peek', '/v1/counters/reset'];
  const hits = JSON.stringify({ ...JSON.parse(body), hits: 1 });
  t.strictSame(await call(peek, 'tgk_reader'), [200, undefined]);
  t.strictSame(await call(reset, 'tgk_reader'), [403, 'right_missing']);
  t.strictSame(await call('/v1/reservations', 'tgk_reader', hits), [403, 'right_missing']);
  for (const path of [peek, reset]) t.strictSame(await call(path, 'tgk_writer'), [200, undefined], path);
  t.strictSame(await call('/v1/reservations', 'tgk_writer', hits), [200, undefined]);
  t.strictSame(await call(peek, 'tgk_other'), [403, 'right_missing']);
  t.strictSame(await call(peek, 'tgk_wrong'), [401, 'caller_not_authenticated']);
  t.strictSame(await call(peek, 'tgk_broken'), [503, 'keys_unavailable']);
  t.strictSame(await call(peek, 'tgk_odd'), [503, 'keys_unavailable']);
  t.strictSame(requests[0], { credential: 'tgk_reader', address: '127.0.0.1' });
  t.equal(requests.filter(({ credential }) => credential === 'tgk_writer').length, 1, 'remembered');
  t.match(
    logLines.find(({ audit }) => audit === true),
    { action: 'reset', caller: 'ada@example.com', callerKind: 'administrator', callerId: 'an id' },
  );
});
