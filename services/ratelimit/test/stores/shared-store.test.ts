import { awaitUntil } from '@tollgate/testkit/await-until';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import { startRedisCluster } from '@tollgate/testkit/redis-cluster';
import { startRedisSentinels } from '@tollgate/testkit/redis-sentinel';
import t, { type Test } from 'tap';
import type { CounterStore } from '../../src/stores/counter-store.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { peek, take } from '../support/counts.ts';
import { redisFromSettings } from '../support/redis-from-settings.ts';
import { makeHit } from './counter-store-contract.ts';

const [redis, cluster, sentinels] = await Promise.all([
  startRedis(),
  startRedisCluster(),
  startRedisSentinels({ password: 'sesame', sentinelPassword: 'open' }),
]);
t.teardown(() => Promise.all([redis.stop(), cluster.stop(), sentinels.stop()]));
const redisUrl = { KVSTORE_SOCKET_TYPE: 'tcp', KVSTORE_URL: redis.address, CACHE_KEY_PREFIX: 'p*:' };

async function startedRedis(t: Test, env: Readonly<Record<string, string>>) {
  const parts = await redisFromSettings(t, { KVSTORE_STARTUP_MAX_ELAPSED_TIME: '20s', ...env });
  await parts.store.start();
  return parts;
}

const stores: Readonly<Record<string, (t: Test) => Promise<CounterStore>>> = {
  memory: async () => new MemoryStore({ nowMs: Date.now, maxCounters: 10_000 }),
  'redis with a second instance': async (t) =>
    (
      await startedRedis(t, {
        ...redisUrl,
        KVSTORE_PERSECOND: 'true',
        KVSTORE_PERSECOND_SOCKET_TYPE: 'tcp',
        KVSTORE_PERSECOND_URL: `redis://${redis.address}?db=1`,
      })
    ).store,
  'redis cluster': async (t) =>
    (await startedRedis(t, { KVSTORE_TYPE: 'cluster', KVSTORE_URL: cluster.address })).store,
  'redis behind sentinels': async (t) =>
    (
      await startedRedis(t, {
        KVSTORE_TYPE: 'sentinel',
        KVSTORE_URL: sentinels.address,
        KVSTORE_AUTH: 'sesame',
        KVSTORE_SENTINEL_AUTH: 'open',
      })
    ).store,
};

function requireShared({ shared }: CounterStore) {
  if (shared === undefined) throw new TypeError('the store shares nothing');
  return shared;
}

for (const [name, start] of Object.entries(stores)) {
  t.test(`${name}: counters are deleted by prefix, and no others`, async (t) => {
    const store = await start(t);
    const shared = requireShared(store);
    const bucket = { algorithm: 'token_bucket', limit: 10, burst: 10, periodSeconds: 60 } as const;
    const doomed = [
      // More than one step of SCAN, on all nodes.
      ...Array.from({ length: 1200 }, (_, i) => makeHit(`shop_a[b]*?\\_${i}`, 1)),
      { ...makeHit('shop_a[b]*?\\_second', 1), unit: 'second' as const },
      { ...makeHit('shop_a[b]*?\\_bucket', 1), rate: bucket },
    ];
    const spared = [makeHit('shop_ab_1', 1), makeHit('shop_axb*?\\_1', 1), makeHit('shop_a[b]x\\_1', 1)];
    await take(store, [...doomed, ...spared]);
    t.equal(await shared.deleteByPrefix('shop_a[b]*?\\_'), doomed.length);
    t.equal(await shared.deleteByPrefix('shop_a[b]*?\\_'), 0);
    const windows = doomed.filter((hit) => !('rate' in hit) || hit.rate === undefined);
    t.strictSame(new Set(await peek(store, windows)), new Set([0]));
    t.strictSame(await peek(store, spared), [1, 1, 1]);
  });

  t.test(`${name}: messages reach every subscriber until it ends`, async (t) => {
    const sender = requireShared(await start(t));
    const receiver = name === 'memory' ? sender : requireShared(await start(t));
    const messages: string[] = [];
    let gaps = 0;
    const stopping = new AbortController();
    t.teardown(() => stopping.abort());
    const onGap = () => {
      gaps += 1;
    };
    await receiver.subscribe({ onMessage: (text) => messages.push(text), onGap }, stopping.signal);
    t.equal(gaps, 1);
    const long = `{"text":"é${'x'.repeat(100_000)}"}`;
    await sender.publish('{"n":1}');
    await sender.publish(long);
    await awaitUntil(() => messages.length >= 2, { what: 'both messages' });
    t.strictSame(messages, ['{"n":1}', long]);
  });
}

t.test('a lost subscription is logged once, and renewed with a gap', async (t) => {
  const own = await startRedis();
  t.teardown(own.stop);
  const { store, logLines } = await startedRedis(t, { ...redisUrl, KVSTORE_URL: own.address });
  const shared = requireShared(store);
  const stopping = new AbortController();
  t.teardown(() => stopping.abort());
  let gaps = 0;
  const messages: string[] = [];
  const onGap = () => {
    gaps += 1;
  };
  await shared.subscribe({ onMessage: (text) => messages.push(text), onGap }, stopping.signal);
  t.equal(await redisCommand(own, 'CLIENT', 'KILL', 'TYPE', 'pubsub'), 1);
  await awaitUntil(() => gaps >= 2, { what: 'the second subscription' });
  await shared.publish('again');
  await awaitUntil(() => messages.includes('again'), { what: 'the message' });
  const logged = logLines.map((line) => line['@message']).filter((text) => /changes/.test(String(text)));
  t.strictSame(logged, [
    'not subscribed to changes of counters, retrying',
    'subscribed to changes of counters again',
  ]);
  stopping.abort();
  await awaitUntil(
    async () =>
      (await redisCommand(own, 'PUBSUB', 'NUMSUB', 'p*:tollgate:changes'))?.toString().endsWith('0'),
    {
      what: 'the end of the subscription',
    },
  );
});

t.test(
  'after a failover, the subscription is at the new primary before the old one is demoted',
  async (t) => {
    const start = stores['redis behind sentinels'];
    if (start === undefined) throw new TypeError('the store has another name');
    const shared = requireShared(await start(t));
    const stopping = new AbortController();
    t.teardown(() => stopping.abort());
    const messages: string[] = [];
    let gaps = 0;
    const onGap = () => {
      gaps += 1;
    };
    await shared.subscribe({ onMessage: (text) => messages.push(text), onGap }, stopping.signal);
    // Sentinels make the old primary a replica, which ends its subscriptions, after four of these
    // periods: two minutes.
    await sentinels.sentinels[0]?.command('SENTINEL', 'DEBUG', 'PUBLISH-PERIOD', '30000');
    const old = await sentinels.primary();
    await sentinels.failover();
    await awaitUntil(() => gaps >= 2, { what: 'the second subscription' });
    t.match(await old.command('ROLE'), ['master']);
    const primary = await sentinels.primary();
    await primary.command('PUBLISH', 'tollgate:changes', 'new');
    await awaitUntil(() => messages.includes('new'), { what: 'the message' });
  },
);
