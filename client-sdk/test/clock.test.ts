import t from 'tap';
import { Stopwatch } from '../src/clock.ts';
import { createMetadataSource } from '../src/discovery.ts';
import { RotatingKeySource } from '../src/id-token/remote-keys.ts';
import { Client } from '../src/index.ts';
import { createRetryPolicy } from '../src/retry.ts';
import { createAuthorizationServer } from '../src/testing.ts';
import { monotonicClock } from './monotonic-clock.ts';
import { makeManager, startGrant } from './tokens/make-manager.ts';

t.test('a stopwatch counts by the clock that has advanced further', async (t) => {
  const monotonic = monotonicClock(t);
  let now = 1_800_000_000;
  const age = new Stopwatch(() => now);
  now -= 3600;
  monotonic.advance(10);
  const setBack = age.elapsedSeconds();
  t.ok(setBack >= 10 && setBack < 20, 'set back: monotonic time counts');
  now += 3600 + 60;
  t.equal(age.elapsedSeconds(), 60, 'suspended: the wall clock counts');
});

t.test('after a failure getToken recovers within the cooldown although the clock is set back', async (t) => {
  const monotonic = monotonicClock(t);
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token, cooldownMs: 60_000 });
  server.advance(3601);
  server.inject({ endpoint: 'token', effect: 'refuse' });
  await t.rejects(manager.getToken(), { name: 'ConnectionError' });
  server.advance(-3600);
  await t.rejects(manager.getToken(), { name: 'ConnectionError' }, 'within the cooldown');
  monotonic.advance(60);
  t.ok((await manager.getToken()).token);
});

t.test('a manager renews its token in time although the clock is set back', async (t) => {
  const monotonic = monotonicClock(t);
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  await manager.getToken();
  server.advance(-7200);
  monotonic.advance(3601);
  t.not((await manager.getToken()).token, token.token);
});

t.test('a key set is loaded again when it is old although the clock is set back', async (t) => {
  const monotonic = monotonicClock(t);
  let now = 1_800_000_000;
  let loads = 0;
  async function load() {
    loads += 1;
    return { keys: [] };
  }
  const keys = new RotatingKeySource({ load, now: () => now });
  const wanted = { algorithm: 'ES256', keyId: 'k' } as const;
  await keys.find(wanted);
  now -= 86_400;
  monotonic.advance(30);
  await keys.find(wanted, { reload: true });
  t.equal(loads, 2, 'the cooldown is over');
  monotonic.advance(600);
  await keys.find(wanted);
  t.equal(loads, 3);
});

t.test('metadata are loaded again when they are old although the clock is set back', async (t) => {
  const monotonic = monotonicClock(t);
  const server = createAuthorizationServer();
  const metadata = createMetadataSource(server.issuer, { fetch: server.fetch, now: server.now });
  await metadata();
  server.advance(-86_400);
  monotonic.advance(3600);
  await metadata();
  t.equal(server.count('metadata'), 2);
});

t.test('retries end at their deadline although the clock is set back', async (t) => {
  const monotonic = monotonicClock(t);
  let nowMs = 1_800_000_000_000;
  const server = createAuthorizationServer();
  const client = new Client({
    ...{ site: server.issuer, clientId: 'client', clientSecret: 'secret', fetch: server.fetch },
    retry: createRetryPolicy({
      ...{ maxAttempts: 100, deadlineMs: 30_000, nowMs: () => nowMs, random: () => 0 },
      async sleep() {
        nowMs -= 3_600_000;
        monotonic.advance(10);
      },
    }),
  });
  server.inject({ endpoint: 'token', times: 100, effect: 'refuse' });
  await t.rejects(client.clientCredentials.getToken(), { name: 'ConnectionError' });
  t.equal(server.count('token'), 4);
});
