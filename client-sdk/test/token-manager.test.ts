import { inspect } from 'node:util';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { AccessToken, Client, type ClientHooks } from '../src/index.ts';
import { createAuthorizationServer } from '../src/testing.ts';
import { memoryTokenStore, type TokenStore } from '../src/token-manager.ts';
import { makeClient, makeManager, startGrant } from './tokens/make-manager.ts';

t.test('a valid token is returned without a request', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  const before = server.requests.length;
  t.equal((await manager.getToken()).token, token.token);
  t.equal(await manager.getToken(), await manager.getToken());
  t.equal(server.requests.length, before);
});

t.test('fifty parallel calls with an expired token cause one refresh', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  server.advance(3601);
  const before = server.count('token');
  const tokens = await Promise.all(Array.from({ length: 50 }, () => manager.getToken()));
  t.equal(server.count('token') - before, 1);
  t.equal(new Set(tokens.map((each) => each.token)).size, 1);
  t.ok(server.isActive(tokens[0]?.token ?? ''));
});

t.test('fifty parallel API calls with an expired token cause one refresh', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  server.advance(3601);
  const before = server.count('token');
  const responses = await Promise.all(Array.from({ length: 50 }, (_, n) => manager.fetch(`/resource/${n}`)));
  t.same(new Set(responses.map(({ status }) => status)), new Set([200]));
  t.equal(server.count('token') - before, 1);
  t.equal(server.count('resource'), 50);
});

t.test('a token close to its expiry is returned while it is renewed', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  await manager.getToken();
  server.advance(3600 - 59);
  t.equal((await manager.getToken()).token, token.token);
  await awaitUntil(async () => (await manager.getToken()).token !== token.token, { what: 'the new token' });
  t.equal(server.count('token'), 2);
});

t.test('a failed early renewal is reported, not thrown, and not retried immediately', async (t) => {
  const { server, client, token } = await startGrant();
  const errors: unknown[] = [];
  await using manager = makeManager({
    client,
    token,
    cooldownMs: 5000,
    onError: (error) => errors.push(error),
  });
  await manager.getToken();
  server.advance(3600 - 59);
  server.inject({ endpoint: 'token', effect: 'refuse' });
  t.equal((await manager.getToken()).token, token.token);
  await awaitUntil(() => errors.length === 1, { what: 'the report' });
  t.match(errors, [{ name: 'ConnectionError' }]);
  t.equal((await manager.getToken()).token, token.token);
  t.equal(server.count('token'), 2);
  server.advance(6);
  await awaitUntil(async () => (await manager.getToken()).token !== token.token, { what: 'the new token' });
});

t.test('the old refresh token survives failures of every kind', async (t) => {
  const { server, client, token } = await startGrant();
  const store = memoryTokenStore();
  await using manager = makeManager({ client, token, store });
  server.advance(3601);
  server.inject({ endpoint: 'token', effect: 'refuse' });
  await t.rejects(manager.getToken(), { name: 'ConnectionError' });
  server.inject({
    endpoint: 'token',
    effect: () => Response.json({ error: 'server_error' }, { status: 500 }),
  });
  await t.rejects(manager.getToken(), { name: 'TokenResponseError', code: 'server_error' });
  server.inject({ endpoint: 'token', effect: () => new Response('<html>', { status: 200 }) });
  await t.rejects(manager.getToken(), { name: 'TokenResponseError' });
  t.ok(server.isActive((await manager.getToken()).token), 'the next call succeeds');
});

t.test('an invalid refresh token leads to acquire, or to the error', async (t) => {
  const { server, client, token } = await startGrant();
  server.revoke(token.refreshToken ?? '');
  server.advance(3601);
  await using stranded = makeManager({ client, token });
  await t.rejects(stranded.getToken(), { name: 'TokenResponseError', code: 'invalid_grant' });
  await using manager = makeManager({
    ...{ client, token },
    acquire: ({ signal }) => client.password.getToken('user', 'password', {}, { signal }),
  });
  t.ok(server.isActive((await manager.getToken()).token));
});

t.test('a manager with only acquire gets a token once and again after expiry', async (t) => {
  const server = createAuthorizationServer();
  const client = makeClient(server);
  await using manager = makeManager({ client, acquire: () => client.clientCredentials.getToken() });
  const first = await Promise.all([manager.getToken(), manager.getToken()]);
  t.equal(first[0].token, first[1].token);
  t.equal(server.count('token'), 1);
  server.advance(3601);
  t.not((await manager.getToken()).token, first[0].token);
  t.equal(server.count('token'), 2);
});

t.test('a failure that acquire returns is thrown', async (t) => {
  const { client } = await startGrant();
  await using manager = makeManager({
    client,
    acquire: () => client.password.getToken('user', 'wrong', {}, { throwOnError: false }),
  });
  await t.rejects(manager.getToken(), { name: 'TokenResponseError', code: 'invalid_grant' });
});

t.test('without token and acquire the error names the options', async (t) => {
  const { client } = await startGrant();
  await using manager = makeManager({ client });
  await t.rejects(manager.getToken(), { name: 'TokenUnavailableError', message: /acquire/ });
  t.throws(() => makeManager({ client, leaseSeconds: 0 }), { name: 'ConfigurationError' });
});

t.test('after a failure there is a cooldown of at least the Retry-After', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token, cooldownMs: 1000 });
  server.advance(3601);
  const busy = () =>
    Response.json({ error: 'temporarily_unavailable' }, { status: 503, headers: { 'retry-after': '20' } });
  server.inject({ endpoint: 'token', effect: busy });
  await t.rejects(manager.getToken(), { name: 'TokenResponseError', code: 'temporarily_unavailable' });
  const before = server.count('token');
  server.advance(19);
  await t.rejects(manager.getToken(), { name: 'TokenResponseError', code: 'temporarily_unavailable' });
  t.equal(server.count('token'), before);
  server.advance(2);
  t.ok(server.isActive((await manager.getToken()).token));
});

t.test('an aborted signal ends one call, not the renewal that others wait for', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  server.advance(3601);
  const gate = Promise.withResolvers<void>();
  server.inject({ endpoint: 'token', effect: gate.promise });
  const impatient = new AbortController();
  const ended = manager.getToken({ signal: impatient.signal });
  const patient = manager.getToken();
  impatient.abort(new Error('enough'));
  await t.rejects(ended, { name: 'AbortError', cause: { message: 'enough' } });
  await t.rejects(manager.getToken({ signal: AbortSignal.abort() }), { name: 'AbortError' });
  gate.resolve();
  t.ok(server.isActive((await patient).token));
  t.equal(server.count('token'), 2);
});

t.test('closing lets a refresh finish and keeps its token', async (t) => {
  const { server, client, token } = await startGrant();
  const store = memoryTokenStore();
  const manager = makeManager({ client, token, store, key: 'k' });
  server.advance(3601);
  const gate = Promise.withResolvers<void>();
  server.inject({ endpoint: 'token', effect: gate.promise });
  const pending = manager.getToken();
  await awaitUntil(() => server.count('token') === 2, { what: 'the refresh' });
  const closing = manager.close();
  await t.rejects(manager.getToken(), { name: 'ConfigurationError', message: /closed/ });
  gate.resolve();
  await closing;
  const stored = AccessToken.fromHash(client, (await store.get('k'))?.record.token ?? {});
  t.equal(stored.token, (await pending).token);
  t.ok(server.isActive(stored.refreshToken ?? ''));
  await manager.close();
});

t.test('renew gets a new token at once; setToken and revoke replace and forget it', async (t) => {
  const { server, client, token } = await startGrant();
  const store = memoryTokenStore();
  await using manager = makeManager({ client, token, store });
  const renewed = await manager.renew();
  t.not(renewed.token, token.token);
  const other = await client.password.getToken('user', 'password');
  await manager.setToken(other);
  t.equal((await manager.getToken()).token, other.token);
  await manager.revoke();
  t.notOk(server.isActive(other.token));
  await t.rejects(manager.getToken(), { name: 'TokenUnavailableError' });
  await using next = makeManager({ client, token: renewed, store });
  await t.rejects(next.getToken(), { name: 'TokenUnavailableError' }, 'a revoked key is not acquired again');
  await manager.setToken(renewed);
  t.equal((await next.getToken()).token, renewed.token);
});

t.test('refreshes are seen by the hooks of the client', async (t) => {
  const { server, token } = await startGrant();
  const seen: boolean[] = [];
  const hooks: ClientHooks = { onRefresh: ({ rotated }) => seen.push(rotated) };
  const hooked = new Client({
    ...{ site: server.issuer, clientId: 'client', clientSecret: 'secret' },
    ...{ fetch: server.fetch, now: server.now, hooks },
  });
  await using manager = makeManager({
    client: hooked,
    token: AccessToken.fromHash(hooked, token.toStored()),
  });
  await manager.renew();
  t.same(seen, [true]);
});

t.test('inspection of a manager does not show its token', async (t) => {
  const { client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  await manager.getToken();
  const shown = inspect(manager, { depth: 9, showHidden: true }) + JSON.stringify(manager);
  t.notMatch(shown, token.token);
  t.notMatch(shown, token.refreshToken ?? '?');
});

t.test('a store that cannot be read stops a renewal; the refresh token is not touched', async (t) => {
  const { server, client, token } = await startGrant();
  const broken: TokenStore = {
    get: () => Promise.reject(new Error('no route to the store')),
    set: () => Promise.reject(new Error('no route to the store')),
  };
  await using manager = makeManager({ client, token, store: broken });
  await t.rejects(manager.getToken(), { name: 'StoreError', cause: { message: 'no route to the store' } });
  t.ok(server.isActive(token.refreshToken ?? ''));
});

t.test('a token that cannot be stored is used, and stored at the next chance', async (t) => {
  const { server, client, token } = await startGrant();
  const memory = memoryTokenStore();
  let writes = 0;
  // The lease is written; the token that comes of it is not, three times.
  const flaky: TokenStore = {
    get: memory.get,
    set: (key, record, version) => {
      writes += 1;
      return writes >= 3 && writes <= 5
        ? Promise.reject(new Error('disk full'))
        : memory.set(key, record, version);
    },
  };
  const errors: unknown[] = [];
  await using manager = makeManager({
    client,
    token,
    key: 'k',
    store: flaky,
    onError: (error) => errors.push(error),
  });
  await manager.getToken();
  const renewed = await manager.renew();
  t.ok(server.isActive(renewed.refreshToken ?? ''));
  t.match(errors, [{ name: 'StoreError' }, { name: 'StoreError' }, { name: 'StoreError' }]);
  t.equal((await manager.getToken()).token, renewed.token);
  await awaitUntil(async () => (await memory.get('k'))?.record.token?.access_token === renewed.token, {
    what: 'the store to have it',
  });
  t.equal(server.count('token'), 2, 'no second refresh');
});

t.test('a token request that outlasts its lease is aborted with an error', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token, leaseSeconds: 1 });
  server.advance(3601);
  server.inject({ endpoint: 'token', effect: 'hang' });
  await t.rejects(manager.getToken(), { name: 'TimeoutError', message: /leaseSeconds/ });
  t.ok(server.isActive((await manager.getToken()).token));
});
