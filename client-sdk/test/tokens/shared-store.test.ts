import { awaitUntil } from '@tollgate/testkit/await-until';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import type { Sleep } from '../../src/retry.ts';
import { memoryTokenStore } from '../../src/token-manager.ts';
import { makeManager, startGrant } from './make-manager.ts';

t.test('managers on one store refresh once between them', async (t) => {
  const { server, client, token } = await startGrant();
  const store = memoryTokenStore();
  const managers = Array.from({ length: 10 }, () => makeManager({ client, token, store }));
  t.teardown(() => Promise.all(managers.map((manager) => manager.close())));
  await Promise.all(managers.map((manager) => manager.getToken()));
  server.advance(3601);
  const tokens = await Promise.all(managers.map((manager) => manager.getToken()));
  t.equal(server.count('token'), 2);
  t.equal(new Set(tokens.map((each) => each.token)).size, 1);
});

t.test('a manager uses the token that another has stored, also after a 401', async (t) => {
  const { server, client, token } = await startGrant();
  const store = memoryTokenStore();
  await using one = makeManager({ client, token, store });
  await using other = makeManager({ client, token, store });
  await Promise.all([one.getToken(), other.getToken()]);
  const renewed = await one.renew();
  server.revoke(token.token);
  t.equal((await other.fetch('/resource/a')).status, 200);
  t.equal((await other.getToken()).token, renewed.token);
  t.equal(server.count('token'), 2);
});

t.test('the token of the store takes precedence over that of the options', async (t) => {
  const { server, client, token } = await startGrant();
  const store = memoryTokenStore();
  await using one = makeManager({ client, token, store });
  const renewed = await one.renew();
  await using restarted = makeManager({ client, token, store });
  t.equal((await restarted.getToken()).token, renewed.token);
  t.equal(server.count('token'), 2);
});

t.test('subjects and clients have separate tokens', async (t) => {
  const { client, token } = await startGrant();
  const store = memoryTokenStore();
  await using anna = makeManager({ client, token, store, subject: 'anna' });
  await anna.getToken();
  await using berta = makeManager({ client, store, subject: 'berta' });
  await t.rejects(berta.getToken(), { name: 'TokenUnavailableError' });
});

t.test('a valid token is used without waiting while another process renews it', async (t) => {
  const { server, client, token } = await startGrant();
  const store = memoryTokenStore();
  await using one = makeManager({ client, token, store });
  await using other = makeManager({ client, token, store });
  await Promise.all([one.getToken(), other.getToken()]);
  server.advance(3600 - 30);
  const gate = Promise.withResolvers<void>();
  server.inject({ endpoint: 'token', effect: gate.promise });
  await one.getToken();
  await awaitUntil(() => server.count('token') === 2, { what: 'the refresh' });
  t.equal((await other.getToken()).token, token.token);
  gate.resolve();
});

t.test('after the holder of a lease died, another manager takes over', async (t) => {
  const { server, client, token } = await startGrant();
  const store = memoryTokenStore();
  const clock = fakeClock();
  const sleep: Sleep = (ms, { signal } = {}) => clock.sleep(ms, signal === undefined ? {} : { signal });
  const dead = makeManager({ client, token, store, leaseSeconds: 30 });
  await using alive = makeManager({ client, token, store, leaseSeconds: 30, sleep });
  await Promise.all([dead.getToken(), alive.getToken()]);
  server.advance(3601);
  const grave = Promise.withResolvers<void>();
  server.inject({ endpoint: 'token', effect: grave.promise });
  const never = dead.getToken().catch(() => 'ended');
  await awaitUntil(() => server.count('token') === 2, { what: 'the request that hangs' });
  const pending = alive.getToken();
  for (let waitedMs = 0; waitedMs < 29_000; waitedMs += 500) {
    await awaitUntil(() => clock.sleepers() === 1, { what: 'the other to wait' });
    clock.advance(500);
  }
  t.equal(server.count('token'), 2, 'no other manager refreshes during the lease');
  await awaitUntil(
    () => {
      if (clock.sleepers() === 1) clock.advance(500);
      return server.count('token') === 3;
    },
    { what: 'the takeover' },
  );
  t.ok(server.isActive((await pending).token));
  t.equal(await Promise.race([never, 'still waiting']), 'still waiting');
  grave.resolve();
  await never;
});

t.test('a manager whose lease was taken while renewing uses the stored token', async (t) => {
  const { server, client, token } = await startGrant();
  const store = memoryTokenStore();
  await using slow = makeManager({ client, token, store, key: 'k' });
  await slow.getToken();
  server.advance(3601);
  const gate = Promise.withResolvers<void>();
  server.inject({ endpoint: 'token', effect: gate.promise });
  const pending = slow.getToken();
  await awaitUntil(() => server.count('token') === 2, { what: 'the slow refresh' });
  const newer = await client.password.getToken('user', 'password');
  const entry = await store.get('k');
  await store.set('k', { token: newer.toStored() }, entry?.version);
  gate.resolve();
  t.equal((await pending).token, newer.token);
});

t.test('a manager whose refresh token was spent by another reads the store before it fails', async (t) => {
  const { server, client, token } = await startGrant();
  const store = memoryTokenStore();
  await using manager = makeManager({ client, token, store, key: 'k' });
  await manager.getToken();
  server.advance(3601);
  const newer = await client.password.getToken('user', 'password');
  server.revoke(token.refreshToken ?? '');
  const gate = Promise.withResolvers<void>();
  server.inject({ endpoint: 'token', effect: gate.promise });
  const pending = manager.getToken();
  await awaitUntil(() => server.count('token') === 3, { what: 'the refresh' });
  const entry = await store.get('k');
  await store.set('k', { token: newer.toStored() }, entry?.version);
  gate.resolve();
  t.equal((await pending).token, newer.token);
});
