import { awaitUntil } from '@tollgate/testkit/await-until';
import { startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { descriptors, startCounterApi } from '../support/counter-api.ts';

const rules = `
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1 }
`;

const redis = await startRedis();
t.teardown(redis.stop);
const options = {
  rules: { 'shop.yaml': rules },
  env: {
    BACKEND_TYPE: 'redis',
    KVSTORE_URL: redis.address,
    KVSTORE_SOCKET_TYPE: 'tcp',
    LOCAL_CACHE_SIZE_IN_BYTES: '600000',
  },
};

t.test('after a reset on one replica, the over-limit caches of the others forget the counter', async (t) => {
  const [one, other] = [await startCounterApi(t, options), await startCounterApi(t, options)];
  const resets = {
    exact: { domain: 'shop', descriptors: descriptors('user=ann') },
    prefix: { domain: 'shop', prefix: [{ key: 'user' }] },
  };
  for (const [kind, body] of Object.entries(resets)) {
    while (await other.decide('shop', 'user=ann'));
    t.notOk(await other.decide('shop', 'user=ann'), `${kind}: from the over-limit cache`);
    const hits = () =>
      [...other.stats.gauges()].find(({ name }) => name === 'ratelimit.localcache.hitCount')?.value;
    t.ok(hits(), 'which has it');
    t.match(await one.call('/v1/counters/reset', body), { status: 200 });
    await awaitUntil(() => other.decide('shop', 'user=ann'), { what: `the ${kind} reset` });
  }
});

t.test('while Redis is down, the counter API is not available, and it recovers', async (t) => {
  const own = await startRedis();
  t.teardown(own.stop);
  const app = await startCounterApi(t, {
    ...options,
    env: { ...options.env, KVSTORE_URL: own.address, KVSTORE_TIMEOUT: '2s' },
  });
  const request = { domain: 'shop', descriptors: descriptors('user=ann') };
  const override = { ...request, requestsPerUnit: 9, ttlSeconds: 60, reason: 'test' };
  const calls = (): Promise<{ readonly status: number; readonly json: unknown }>[] => [
    app.call('/v1/counters/peek', request),
    app.call('/v1/counters/reset', request),
    app.call('/v1/counters/reset', { domain: 'shop', prefix: [] }),
    app.call('/v1/reservations', { ...request, hits: 1 }),
    app.call('/v1/overrides', override, { method: 'PUT' }),
  ];
  await own.stop();
  for (const reply of await Promise.all(calls())) {
    t.match(reply, { status: 503, json: { code: 'backend_failure' } });
  }
  t.equal((await app.call('/v1/top')).status, 200, 'lists need no store');
  const again = await startRedis({ port: own.port });
  t.teardown(again.stop);
  await awaitUntil(async () => (await Promise.all(calls())).every(({ status }) => status === 200), {
    what: 'the counter API',
  });
});
