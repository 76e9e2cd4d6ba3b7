import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import { formatStats } from '../../src/metrics/text.ts';
import { startApp } from '../support/start-app.ts';

const rules = {
  'shop.yaml': 'domain: shop\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 5 } }]',
};

t.test('the warm-up makes decisions before the ports open, and changes no statistics', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const { stats, logLines } = await startApp(t, {
    rules,
    env: { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address },
    warmUp: true,
  });
  t.match(await redisCommand(redis, 'INFO', 'commandstats'), /cmdstat_incrby:calls=\d{2,}/);
  const keys = await redisCommand(redis, 'KEYS', '*');
  for (const key of Array.isArray(keys) ? keys : []) {
    t.match(key, /^tollgate-warm-up_/);
    t.match((await redisCommand(redis, 'GET', String(key))) ?? '0', '0', 'adds 0, for a second');
  }
  t.equal(stats.counter('ratelimit_server.ShouldRateLimit.total_requests').value, 0);
  t.same([...stats.rules()], []);
  t.same(
    logLines.filter(({ level }) => level !== 'info' && level !== 'debug'),
    [],
  );
});

t.test('a store that refuses hits does not prevent the start', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  await redisCommand(redis, 'ACL', 'SETUSER', 'default', '-incrby');
  const { ports, logLines } = await startApp(t, {
    rules,
    env: { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address },
    warmUp: true,
  });
  t.same(
    logLines.filter(({ level }) => level === 'warning' || level === 'error'),
    [],
  );
  t.equal((await fetch(`http://127.0.0.1:${ports.http}/healthcheck`)).status, 200);
});

const localCache = { LOCAL_CACHE_SIZE_IN_BYTES: '1048576' };

async function statsAfterStart(t: Test, env: Readonly<Record<string, string>>, warmUp: boolean) {
  const { stats } = await startApp(t, { rules, env: { ...localCache, ...env }, warmUp });
  return formatStats(stats);
}

t.test('all statistics after the start are the same with and without the warm-up', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  for (const env of [{ BACKEND_TYPE: 'memory' }, { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address }]) {
    const warm = await statsAfterStart(t, env, true);
    t.equal(warm, await statsAfterStart(t, env, false), env.BACKEND_TYPE);
    t.match(warm, 'ratelimit.localcache.lookupCount: 0\n', 'the local cache of the service is not used');
    t.match(warm, 'ratelimit.localcache.entryCount: 0\n');
  }
});
