import { awaitUntil } from '@tollgate/testkit/await-until';
import { startMemcached } from '@tollgate/testkit/memcached';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { formatFamily, serviceMetrics } from '../../src/metrics/prometheus-format.ts';
import type { StatsRegistry } from '../../src/metrics/registry.ts';
import { createMemcachedStore } from '../../src/stores/memcached/memcached-store.ts';
import { makeHit } from '../stores/counter-store-contract.ts';
import { peek, take } from '../support/counts.ts';
import { redisFromSettings } from '../support/redis-from-settings.ts';
import { storeFromSettings } from '../support/store-from-settings.ts';

function errorsOf(stats: StatsRegistry, store: string) {
  const count = (reason: string): number =>
    stats.counter(`ratelimit.store.${store}.exchange_error`, { reason }).value;
  return {
    unavailable: count('unavailable'),
    timeout: count('timeout'),
    lost: count('lost'),
    refused: count('refused'),
  };
}

const none = { unavailable: 0, timeout: 0, lost: 0, refused: 0 };

t.test('exchanges with Redis have a time, and errors a reason', async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const { store, stats } = await redisFromSettings(t, {
    KVSTORE_URL: server.address,
    KVSTORE_TIMEOUT: '2s',
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_URL: server.address,
  });
  const { histogram } = stats.timer('ratelimit.store.redis.exchange_time');
  const text = [...serviceMetrics(stats, { responseTimeAsMilliseconds: false })].flatMap((family) => [
    ...formatFamily(family),
  ]);
  for (const store of ['redis', 'redis_per_second']) {
    t.ok(text.includes(`ratelimit_store_exchange_time_seconds_count{store="${store}"} 0\n`));
    for (const reason of Object.keys(none))
      t.ok(
        text.includes(`ratelimit_store_exchange_error{store="${store}",reason="${reason}"} 0\n`),
        `${text}`,
      );
  }

  await store.start();
  await Promise.all([take(store, [makeHit('a')]), take(store, [makeHit('b')])]);
  t.equal(histogram.count, 1, 'one for a batch');
  t.strictSame(errorsOf(stats, 'redis'), none);

  await redisCommand(server, 'CONFIG', 'SET', 'maxmemory', '1');
  await t.rejects(take(store, [makeHit('new')]), /OOM/);
  t.strictSame(errorsOf(stats, 'redis'), { ...none, refused: 1 });
  await redisCommand(server, 'CONFIG', 'SET', 'maxmemory', '0');

  await redisCommand(server, 'CLIENT', 'PAUSE', '60000', 'WRITE');
  await t.rejects(take(store, [makeHit('a')]), /did not answer within/);
  t.strictSame(errorsOf(stats, 'redis'), { ...none, refused: 1, timeout: 1 });
  await redisCommand(server, 'CLIENT', 'UNPAUSE');
  await awaitUntil(() => peek(store, [makeHit('a')]), { what: 'a new connection' });

  const count = histogram.count;
  await redisCommand(server, 'CLIENT', 'PAUSE', '60000', 'WRITE');
  const pending = t.rejects(take(store, [makeHit('a')]));
  await awaitUntil(
    async () => String(await redisCommand(server, 'INFO', 'clients')).includes('blocked_clients:1'),
    {
      what: 'the hit at Redis',
    },
  );
  await server.kill();
  await pending;
  // Attempts while the pool connected again are counted as unavailable.
  const { unavailable, ...others } = errorsOf(stats, 'redis');
  t.strictSame(others, { refused: 1, timeout: 1, lost: 1 });
  t.equal(histogram.count, count + 1, 'failed exchanges have a time');
  await awaitUntil(
    async () => {
      await t.rejects(take(store, [makeHit('a')]));
      return errorsOf(stats, 'redis').unavailable > unavailable;
    },
    { what: 'an exchange without a connection' },
  );
  t.strictSame(errorsOf(stats, 'redis_per_second'), none);
});

t.test('exchanges with memcached have a time, and errors a reason', async (t) => {
  const server = await startMemcached();
  t.teardown(server.stop);
  const { store, stats } = await storeFromSettings(t, createMemcachedStore, {
    BACKEND_TYPE: 'memcache',
    MCACHE_HOST_PORT: server.address,
  });
  t.strictSame(errorsOf(stats, 'memcache'), none);
  await store.start();
  await take(store, [makeHit('a')]);
  const { histogram } = stats.timer('ratelimit.store.memcache.exchange_time');
  await awaitUntil(() => histogram.count === 1, { what: 'the time of the exchange' });
  t.strictSame(errorsOf(stats, 'memcache'), none);
  await server.kill();
  await awaitUntil(
    async () => {
      await take(store, [makeHit('a')]);
      return errorsOf(stats, 'memcache').unavailable > 0;
    },
    { what: 'an exchange without a connection' },
  );
});
