import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t, { type Test } from 'tap';
import { AdminKeys } from '../../src/operator-api/admin-keys.ts';
import { startCounterApi } from '../support/counter-api.ts';

const rules = 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 2 } }]';
const token = 'tgk_verifier';

interface Reply {
  readonly status?: number;
  readonly body: unknown;
}

/** The endpoint of the auth server, which is another service, with the replies of its contract. */
async function startVerifier(t: Test, replies: Readonly<Record<string, Reply>>) {
  const requests: { readonly key: string; readonly address: string }[] = [];
  let open = Promise.withResolvers<void>();
  open.resolve();
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request));
    requests.push(body);
    await open.promise;
    const isOurs =
      request.url === '/auth/admin/api-keys/verify' && request.headers.authorization === `Bearer ${token}`;
    const { status = 200, body: reply } = replies[body.key] ?? {
      body: { valid: false, code: 'invalid_api_key' },
    };
    response.writeHead(isOurs ? status : 403).end(JSON.stringify(reply));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return {
    url: `http://127.0.0.1:${port}/auth`,
    requests,
    /** Requests wait for their reply until `release` is called. */
    hold: () => {
      open = Promise.withResolvers();
    },
    release: () => open.resolve(),
  };
}

const verified = (...admin_scopes: string[]): Reply => ({
  body: { valid: true, code: 'ok', caller: {}, key: { name: admin_scopes.join(' '), admin_scopes } },
});

t.test('API keys of the auth server have the rights of their admin scopes', async (t) => {
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
  t.strictSame(requests[0], { key: 'tgk_reader', address: '127.0.0.1' });
  t.equal(requests.filter(({ key }) => key === 'tgk_writer').length, 1, 'remembered');
  t.match(
    logLines.find(({ audit }) => audit === true),
    { action: 'reset', caller: 'limits:write' },
  );
});

t.test('results are kept for five seconds, and failures are not', async (t) => {
  const replies: Record<string, Reply> = { tgk_a: verified('limits:read') };
  const { url, requests } = await startVerifier(t, replies);
  const clock = fakeClock(1_000_000);
  const keys = new AdminKeys({ url, token, nowMs: clock.nowMs });
  const together = await Promise.all([keys.find('tgk_a'), keys.find('tgk_a')]);
  t.match(together, [{ name: 'limits:read' }, { name: 'limits:read' }]);
  t.equal(requests.length, 1, 'concurrent requests share one check');
  replies.tgk_a = { body: { valid: false, code: 'api_key_disabled' } };
  clock.advance(4_999);
  t.match(await keys.find('tgk_a'), { name: 'limits:read' });
  clock.advance(1);
  t.equal(await keys.find('tgk_a'), undefined, 'revoked');
  t.equal(await keys.find('tgk_a'), undefined);
  t.equal(requests.length, 2, 'wrong keys are remembered, too');
  replies.tgk_b = { status: 503, body: {} };
  for (const _ of [1, 2]) await t.rejects(keys.find('tgk_b'), { code: 'keys_unavailable' });
  t.equal(requests.length, 4);
});

/** Finds so many keys that do not exist. */
function flood(keys: AdminKeys, count: number): Promise<unknown[]> {
  return Promise.all(
    Array.from({ length: count }, (_, at) => keys.find(`tgk_wrong_${at}`).catch((error: unknown) => error)),
  );
}

t.test('a right key waits for the checks of wrong ones, eight at a time', async (t) => {
  const { url, requests, hold, release } = await startVerifier(t, { tgk_a: verified('limits:read') });
  const keys = new AdminKeys({ url, token, nowMs: () => 0, timeoutMs: 60_000 });
  hold();
  const wrong = flood(keys, 20);
  const right = keys.find('tgk_a');
  await awaitUntil(() => requests.length === 8, { what: 'eight checks' });
  release();
  t.match(await right, { name: 'limits:read' });
  t.strictSame(await wrong, Array.from({ length: 20 }));
  t.equal(requests.length, 21);
});

t.test('waiting has an end and a bound, and turns are passed on', async (t) => {
  const { url, requests, hold, release } = await startVerifier(t, { tgk_a: verified('limits:read') });
  const keys = new AdminKeys({ url, token, nowMs: () => 0, timeoutMs: 300 });
  hold();
  const results = await flood(keys, 8 + 200 + 5);
  t.ok(results.every((result) => Object(result).code === 'keys_unavailable'));
  t.ok(requests.length < 8 + 200, 'the others waited in vain');
  release();
  const find = () => keys.find('tgk_a').catch(() => undefined);
  t.match(await awaitUntil(find, { what: 'a check after the flood' }), { name: 'limits:read' });
});
