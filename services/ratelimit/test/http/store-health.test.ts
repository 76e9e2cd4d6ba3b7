import { awaitUntil } from '@tollgate/testkit/await-until';
import { startMemcached } from '@tollgate/testkit/memcached';
import { type Redis, startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import { type StartedApp, startApp } from '../support/start-app.ts';

const rules = {
  'demo.yaml': `
domain: demo
on_store_failure: allow
descriptors: [{ key: tenant, rate_limit: { unit: hour, requests_per_unit: 100 } }]
`,
};

async function getHealth({ ports }: StartedApp): Promise<number> {
  return (await fetch(`http://127.0.0.1:${ports.http}/healthcheck`)).status;
}

async function decide({ ports }: StartedApp): Promise<number> {
  const body = JSON.stringify({
    domain: 'demo',
    descriptors: [{ entries: [{ key: 'tenant', value: 'a' }] }],
  });
  return (await fetch(`http://127.0.0.1:${ports.http}/json`, { method: 'POST', body })).status;
}

async function startWithRedis(t: Test, redis: Redis, env: Readonly<Record<string, string>>) {
  return await startApp(t, {
    rules,
    env: { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address, KVSTORE_TIMEOUT: '300ms', ...env },
  });
}

t.test('by default health does not depend on Redis, and failure policies answer', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const app = await startWithRedis(t, redis, {});
  t.equal(await getHealth(app), 200);
  await redis.kill();
  const lost = () => app.logLines.some((line) => line['@message'] === 'lost the last connection to Redis');
  await awaitUntil(lost, { what: 'the loss' });
  t.strictSame([await getHealth(app), await decide(app)], [200, 200]);
});

t.test('with KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION health follows the connections', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const app = await startWithRedis(t, redis, { KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true' });
  t.equal(await getHealth(app), 200);

  process.kill(redis.pid, 'SIGSTOP');
  t.equal(await decide(app), 200, 'the policy answers');
  await awaitUntil(async () => (await getHealth(app)) === 500, {
    what: 'a Redis that hangs, after a decision',
  });
  process.kill(redis.pid, 'SIGCONT');
  await awaitUntil(async () => (await getHealth(app)) === 200, { what: 'the reconnect' });

  await redis.kill();
  await awaitUntil(async () => (await getHealth(app)) === 500, {
    what: 'a Redis that is gone, without a decision',
  });
});

t.test('health does not depend on memcached, which fails open', async (t) => {
  const memcached = await startMemcached();
  t.teardown(memcached.stop);
  const app = await startApp(t, {
    rules,
    env: { BACKEND_TYPE: 'memcache', MCACHE_HOST_PORT: memcached.address },
  });
  await memcached.kill();
  const unreachable = app.stats.gauge('ratelimit.memcache.unreachable_servers');
  await awaitUntil(() => unreachable.value === 1, { what: 'the loss' });
  t.strictSame([await getHealth(app), await decide(app)], [200, 200]);
});
