import { generateKeyPairSync } from 'node:crypto';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { Client, type ClientOptions } from '../src/index.ts';
import { createRetryPolicy, type RetryOptions } from '../src/retry.ts';
import { type AuthorizationServer, createAuthorizationServer } from '../src/testing.ts';

interface Setup {
  retry?: RetryOptions;
  client?: ClientOptions<true>;
  server?: AuthorizationServer;
}

/**
 * A client whose waits pass at once and are noted; without chance, every wait is the longest
 * possible.
 */
function setUp({ retry = {}, client: options = {}, server = createAuthorizationServer() }: Setup = {}) {
  const delays: { delayMs: number; reason: string }[] = [];
  const clock = fakeClock();
  const policy = createRetryPolicy({
    ...{ random: () => 0.999999, nowMs: clock.now },
    sleep: (ms) => Promise.resolve(clock.advance(ms)),
    ...retry,
  });
  const client = new Client({
    ...{
      site: server.issuer,
      clientId: 'client',
      clientSecret: 'secret',
      fetch: server.fetch,
      now: server.now,
    },
    ...{ retry: policy, hooks: { onRetry: ({ delayMs, reason }) => void delays.push({ delayMs, reason }) } },
    ...options,
  });
  return { server, client, delays, clock };
}

const answer =
  (status: number, headers: Record<string, string> = {}) =>
  () =>
    Response.json({ error: 'temporarily_unavailable' }, { status, headers });

t.test('network errors and gateway failures are retried with backoff', async (t) => {
  const { server, client, delays } = setUp();
  server.inject({ endpoint: 'token', effect: 'refuse' });
  server.inject({ endpoint: 'token', effect: answer(502) });
  t.ok((await client.clientCredentials.getToken()).token);
  t.same(delays, [
    { delayMs: 199, reason: 'OAUTH_CLIENT_CONNECTION' },
    { delayMs: 399, reason: 'status_502' },
  ]);
});

t.test('the caller gets the last failure', async (t) => {
  const { server, client, delays } = setUp();
  server.inject({ endpoint: 'token', times: 3, effect: answer(503) });
  await t.rejects(client.clientCredentials.getToken(), { name: 'TokenResponseError' });
  t.equal(server.count('token'), 3);
  t.equal(delays.length, 2);
  server.inject({ endpoint: 'token', times: 3, effect: 'refuse' });
  await t.rejects(client.clientCredentials.getToken(), { name: 'ConnectionError' });
});

t.test('refusals are not tried again', async (t) => {
  const { server, client } = setUp();
  await t.rejects(client.password.getToken('user', 'wrong'), {
    name: 'TokenResponseError',
    code: 'invalid_grant',
  });
  server.inject({ endpoint: 'token', effect: answer(500) });
  await t.rejects(client.clientCredentials.getToken(), { name: 'TokenResponseError' });
  t.equal(server.count('token'), 2);
});

t.test('Retry-After in seconds or as a date is honoured up to the deadline', async (t) => {
  const { server, client, delays, clock } = setUp();
  server.inject({ endpoint: 'token', effect: answer(429, { 'retry-after': '7' }) });
  const date = new Date(clock.nowMs() + 7000 + 9000).toUTCString();
  server.inject({ endpoint: 'token', effect: answer(503, { 'retry-after': date }) });
  await client.clientCredentials.getToken();
  t.same(delays, [
    { delayMs: 7000, reason: 'status_429' },
    { delayMs: 9000, reason: 'status_503' },
  ]);
  server.inject({ endpoint: 'token', effect: answer(429, { 'retry-after': '31' }) });
  await t.rejects(client.clientCredentials.getToken(), { name: 'TokenResponseError' });
  t.equal(delays.length, 2);
});

t.test('a code is never sent twice', async (t) => {
  for (const effect of ['refuse', answer(429, { 'retry-after': '1' }), answer(503)] as const) {
    const { server, client } = setUp();
    server.inject({ endpoint: 'token', effect });
    await t.rejects(client.authCode.getToken('code', {}));
    t.equal(server.count('token'), 1);
  }
});

t.test('a refresh is retried only if the server cannot have used the token', async (t) => {
  const server = createAuthorizationServer();
  const { client } = setUp({ server });
  const token = await client.password.getToken('user', 'password');
  const refusing = setUp({
    server,
    client: { fetch: failOnce(server, Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })) },
  });
  const second = await refusing.client.getToken({
    grant_type: 'refresh_token',
    refresh_token: token.refreshToken,
  });
  t.equal(refusing.delays.length, 1);

  const resetting = setUp({
    server,
    client: { fetch: failOnce(server, Object.assign(new Error('reset'), { code: 'ECONNRESET' })) },
  });
  const refresh = { grant_type: 'refresh_token', refresh_token: second.refreshToken };
  await t.rejects(resetting.client.getToken(refresh), { name: 'ConnectionError' });
  t.equal(resetting.delays.length, 0);

  const busy = setUp({ server });
  server.inject({ endpoint: 'token', effect: answer(502) });
  await t.rejects(busy.client.getToken(refresh), { name: 'TokenResponseError' });
  server.inject({ endpoint: 'token', effect: answer(429) });
  t.ok((await busy.client.getToken(refresh)).token, '429 says that nothing was done');
});

t.test('a refresh is repeated if the server is idempotent', async (t) => {
  const server = createAuthorizationServer({ rotateRefreshTokens: false });
  const { client, delays } = setUp({ server, retry: { refreshIsIdempotent: true } });
  const token = await client.password.getToken('user', 'password');
  server.inject({ endpoint: 'token', effect: 'lose' });
  t.ok((await token.refresh()).token);
  t.equal(delays.length, 1);
});

t.test('API calls are repeated if their verb is idempotent, or nothing was processed', async (t) => {
  const { server, client } = setUp();
  const token = await client.clientCredentials.getToken();
  server.inject({ endpoint: 'resource', effect: 'lose' });
  t.equal((await token.get('/resource/a')).status, 200);
  server.inject({ endpoint: 'resource', effect: 'lose' });
  await t.rejects(token.post('/resource/a', { body: 'x' }), { name: 'ConnectionError' });
  server.inject({ endpoint: 'resource', effect: answer(429) });
  t.equal((await token.post('/resource/a', { body: 'x' })).status, 200);
  server.inject({ endpoint: 'resource', effect: answer(503) });
  await t.rejects(token.post('/resource/a', { body: 'x' }), { name: 'ProtectedResourceError' });
});

t.test('every attempt signs a new assertion', async (t) => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const server = createAuthorizationServer({
    clients: [{ clientId: 'client', verifyAssertion: () => true }],
  });
  const clientAuth = { method: 'private_key_jwt', key, algorithm: 'ES256' } as const;
  const client = new Client({
    ...{ site: server.issuer, clientId: 'client', clientAuth, fetch: server.fetch },
    retry: createRetryPolicy({ sleep: () => Promise.resolve() }),
  });
  server.inject({ endpoint: 'token', effect: 'lose' });
  await client.clientCredentials.getToken();
  const assertions = server.requests.map(({ params }) => params.get('client_assertion'));
  t.equal(assertions.length, 2);
  t.equal(new Set(assertions).size, 2);
});

t.test('an aborted signal ends the wait', async (t) => {
  const clock = fakeClock();
  const server = createAuthorizationServer();
  const giveUp = new AbortController();
  const client = new Client({
    ...{ site: server.issuer, clientId: 'client', clientSecret: 'secret', fetch: server.fetch },
    retry: createRetryPolicy({
      sleep: (ms, { signal } = {}) => {
        const asleep = clock.sleep(ms, signal === undefined ? {} : { signal });
        giveUp.abort(new Error('enough'));
        return asleep;
      },
    }),
  });
  server.inject({ endpoint: 'token', effect: 'refuse' });
  await t.rejects(client.clientCredentials.getToken({}, { signal: giveUp.signal }), {
    name: 'AbortError',
    cause: { message: 'enough' },
  });
  t.equal(server.count('token'), 1);
});

/** The server's fetch, but the first call fails as a broken network does. */
function failOnce(server: AuthorizationServer, cause: Error): typeof fetch {
  let isFirst = true;
  return (input, init) => {
    if (!isFirst) return server.fetch(input, init);
    isFirst = false;
    return Promise.reject(new TypeError('fetch failed', { cause }));
  };
}
