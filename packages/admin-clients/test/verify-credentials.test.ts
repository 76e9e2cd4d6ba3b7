import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t, { type Test } from 'tap';
import { CredentialVerifier, VerifierUnavailableError } from '../src/verify-credentials.ts';

const token = 'tgk_verifier';

interface Reply {
  readonly status?: number;
  readonly body: unknown;
}

/** The endpoint of the auth server, which is another service, with the replies of its contract. */
async function startVerifier(t: Test, replies: Readonly<Record<string, Reply>>) {
  const requests: { readonly credential: string; readonly address: string }[] = [];
  let open = Promise.withResolvers<void>();
  open.resolve();
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request));
    requests.push(body);
    await open.promise;
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
  body: {
    valid: true,
    code: 'ok',
    administrator: { kind: 'api_key', id: 'an id', name: admin_scopes.join(' '), admin_scopes },
  },
});

t.test('results are kept for five seconds, and failures are not', async (t) => {
  const replies: Record<string, Reply> = { tgk_a: verified('limits:read') };
  const { url, requests } = await startVerifier(t, replies);
  const clock = fakeClock(1_000_000);
  const verifier = new CredentialVerifier({ url, token, nowMs: clock.nowMs });
  const together = await Promise.all([verifier.verify('tgk_a'), verifier.verify('tgk_a')]);
  t.match(together, [{ name: 'limits:read' }, { name: 'limits:read' }]);
  t.equal(requests.length, 1, 'concurrent requests share one check');
  replies.tgk_a = { body: { valid: false, code: 'api_key_disabled' } };
  clock.advance(4_999);
  t.match(await verifier.verify('tgk_a'), { name: 'limits:read' });
  clock.advance(1);
  t.equal(await verifier.verify('tgk_a'), undefined, 'revoked');
  t.equal(await verifier.verify('tgk_a'), undefined);
  t.equal(requests.length, 2, 'wrong credentials are remembered, too');
  replies.tgk_b = { status: 503, body: {} };
  for (const _ of [1, 2]) await t.rejects(verifier.verify('tgk_b'), { name: 'VerifierUnavailableError' });
  t.equal(requests.length, 4);
});

/** Verifies so many keys that do not exist. */
function flood(verifier: CredentialVerifier, count: number): Promise<unknown[]> {
  return Promise.all(
    Array.from({ length: count }, (_, at) =>
      verifier.verify(`tgk_wrong_${at}`).catch((error: unknown) => error),
    ),
  );
}

t.test('a right key waits for the checks of wrong ones, eight at a time', async (t) => {
  const { url, requests, hold, release } = await startVerifier(t, { tgk_a: verified('limits:read') });
  const verifier = new CredentialVerifier({ url, token, nowMs: () => 0, timeoutMs: 60_000 });
  hold();
  const wrong = flood(verifier, 20);
  const right = verifier.verify('tgk_a');
  await awaitUntil(() => requests.length === 8, { what: 'eight checks' });
  release();
  t.match(await right, { name: 'limits:read' });
  t.strictSame(await wrong, Array.from({ length: 20 }));
  t.equal(requests.length, 21);
});

t.test('waiting has an end and a bound, and turns are passed on', async (t) => {
  const { url, requests, hold, release } = await startVerifier(t, { tgk_a: verified('limits:read') });
  const verifier = new CredentialVerifier({ url, token, nowMs: () => 0, timeoutMs: 300 });
  hold();
  const results = await flood(verifier, 8 + 200 + 5);
  t.ok(results.every((result) => result instanceof VerifierUnavailableError));
  t.ok(requests.length < 8 + 200, 'the others waited in vain');
  release();
  const find = () => verifier.verify('tgk_a').catch(() => undefined);
  t.match(await awaitUntil(find, { what: 'a check after the flood' }), { name: 'limits:read' });
});

t.test('texts that are no credentials are not sent, and odd replies are failures', async (t) => {
  const odd = { kind: 'user', id: '', name: '', admin_scopes: [] };
  const { url, requests } = await startVerifier(t, {
    tgk_odd: { body: { valid: true, administrator: odd } },
    tgk_none: { body: { valid: true } },
    tgk_text: { body: 'valid' },
  });
  const verifier = new CredentialVerifier({ url, token, nowMs: () => 0 });
  for (const text of ['', 'x'.repeat(8 * 1024 + 1)]) t.equal(await verifier.verify(text), undefined);
  t.equal(requests.length, 0);
  for (const key of ['tgk_odd', 'tgk_none', 'tgk_text'])
    await t.rejects(verifier.verify(key), { name: 'VerifierUnavailableError' }, key);
});
