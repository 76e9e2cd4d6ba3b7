import t from 'tap';
import type { AccessToken } from '../../src/index.ts';
import { memoryTokenStore, type TokenStore } from '../../src/token-manager.ts';
import { monotonicClock } from '../monotonic-clock.ts';
import { makeManager, startGrant } from './make-manager.ts';

const hang = () => new Promise<never>(() => undefined);

/** A store that counts reads, and reports a conflict for each write. */
function conflictingStore() {
  const store = {
    reads: 0,
    get() {
      store.reads += 1;
      return Promise.resolve({ record: {}, version: String(store.reads) });
    },
    set: () => Promise.resolve({ ok: false, reason: 'conflict' } as const),
  };
  return store;
}

t.test('a store that does not respond ends the call with a StoreError', async (t) => {
  const { client, token } = await startGrant();
  const memory = memoryTokenStore();
  for (const [store, verb] of [
    [{ get: hang, set: memory.set }, 'read'],
    [{ get: memory.get, set: hang }, 'written'],
  ] as const) {
    await using manager = makeManager({ client, token, store, storeTimeoutMs: 20 });
    const error = {
      ...{ name: 'StoreError', kind: 'OAUTH_CLIENT_STORE', retryable: true },
      message: `the token store cannot be ${verb}: no result within 20 ms`,
    };
    await t.rejects(manager.renew(), error);
    await t.rejects(manager.setToken(token), error);
    await t.rejects(manager.revoke(), error);
  }
});

t.test('an acquire that ignores its signal ends with a TimeoutError, and the lease is free', async (t) => {
  const { client } = await startGrant();
  const store = memoryTokenStore();
  await using manager = makeManager({ client, store, key: 'k', leaseSeconds: 0.05, acquire: hang });
  await t.rejects(manager.getToken(), { name: 'TimeoutError', message: /raise `leaseSeconds`/ });
  t.same((await store.get('k'))?.record, {});
});

t.test('a store with nothing but conflicts ends the call with a StoreError', async (t) => {
  const { client, token, server } = await startGrant();
  const store = conflictingStore();
  await using manager = makeManager({ client, token, store });
  let timers = 0;
  const interval = setInterval(() => {
    timers += 1;
  }, 1);
  t.teardown(() => clearInterval(interval));
  server.advance(3601);
  const error = { name: 'StoreError', message: /10 conflicts in a row/, retryable: true };
  await t.rejects(manager.getToken(), error);
  t.equal(store.reads, 10);
  t.ok(timers > 0, 'timers of the process fire meanwhile');
  await t.rejects(manager.setToken(token), error);
  const revocations = server.count('revocation');
  await t.rejects(manager.revoke(), error);
  t.ok(server.count('revocation') - revocations <= 10);
});

t.test('slow reads count for the time that a manager waits for other processes', async (t) => {
  const monotonic = monotonicClock(t);
  const { client } = await startGrant();
  let version = 0;
  const busy: TokenStore = {
    async get() {
      version += 1;
      monotonic.advance(10);
      const lease = { holder: 'other', seconds: 30, expiresAt: client.settings.now() + 30 };
      return { record: { lease }, version: String(version) };
    },
    set: hang,
  };
  await using manager = makeManager({ client, store: busy, sleep: async () => {} });
  await t.rejects(manager.getToken(), { name: 'TimeoutError', message: /other processes/ });
  t.equal(version, 9);
});

t.test('what acquire throws is the cause of a TokenUnavailableError', async (t) => {
  const { client, token } = await startGrant();
  for (const thrown of [new TypeError('no secret'), 'text', Object.create(null), undefined]) {
    await using manager = makeManager({ client, acquire: () => Promise.reject(thrown) });
    await t.rejects(manager.getToken(), {
      ...{ name: 'TokenUnavailableError', kind: 'OAUTH_CLIENT_TOKEN_UNAVAILABLE', retryable: true },
      ...(thrown !== undefined && { cause: thrown }),
    });
  }
  await using manager = makeManager({ client, acquire: () => client.password.getToken('user', 'wrong') });
  await t.rejects(manager.getToken(), { name: 'TokenResponseError' }, 'an error of this library is thrown');
  // From JavaScript, where no compiler objects.
  const invalid = async () => ({ accessToken: 'at' }) as unknown as AccessToken;
  await using mistaken = makeManager({ client, acquire: invalid });
  await t.rejects(mistaken.getToken(), { name: 'ConfigurationError', message: /`acquire` must return/ });
  t.ok(token.token);
});

t.test('after a 401 a failing acquire is thrown by fetch', async (t) => {
  const { server, client } = await startGrant();
  let calls = 0;
  await using manager = makeManager({
    client,
    acquire() {
      calls += 1;
      return calls === 1
        ? client.clientCredentials.getToken()
        : Promise.reject(new Error('the file is gone'));
    },
  });
  server.revoke((await manager.getToken()).token);
  await t.rejects(manager.fetch('/resource/a'), {
    name: 'TokenUnavailableError',
    cause: { message: 'the file is gone' },
  });
});

t.test('a store that does not keep to its interface ends the call with a StoreError', async (t) => {
  const { client, token } = await startGrant();
  const memory = memoryTokenStore();
  // From JavaScript, where no compiler objects.
  const stores = [
    { get: () => {}, set: () => {} },
    { get: async () => ({}), set: memory.set },
    { get: async () => ({ record: {}, version: 1 }), set: memory.set },
    { get: memory.get, set: async () => undefined },
    { get: memory.get, set: async () => ({ ok: true }) },
    {
      get: memory.get,
      set() {
        throw Object.create(null);
      },
    },
  ] as unknown as TokenStore[];
  for (const store of stores) {
    await using manager = makeManager({ client, token, store });
    await t.rejects(manager.setToken(token), { name: 'StoreError' });
  }
});

t.test('limits that timers do not support are refused', async (t) => {
  const { client } = await startGrant();
  for (const options of [
    { leaseSeconds: 0 },
    { storeTimeoutMs: 0 },
    { storeTimeoutMs: Number.NaN },
    { storeTimeoutMs: 2 ** 31 },
  ])
    t.throws(() => makeManager({ client, ...options }), { name: 'ConfigurationError' });
});
