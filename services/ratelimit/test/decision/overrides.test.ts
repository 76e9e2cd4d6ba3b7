import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startMemcached } from '@tollgate/testkit/memcached';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { runCounters } from '../../src/cli/counters.ts';
import { maxOverrides, Overrides, toName } from '../../src/decision/overrides.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { adminToken, type CounterApi, descriptors, startCounterApi } from '../support/counter-api.ts';

const rules = {
  'shop.yaml': `
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: bucket
    rate_limit: { unit: hour, requests_per_unit: 3, algorithm: token_bucket, burst: 2 }
  - key: leased
    rate_limit: { unit: hour, requests_per_unit: 100, lease: 10% }
  - key: path
    value: /files/*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
`,
};
const cached = { LOCAL_CACHE_SIZE_IN_BYTES: '600000' };

const redis = await startRedis();
t.teardown(redis.stop);
const overRedis = {
  ...cached,
  BACKEND_TYPE: 'redis',
  KVSTORE_URL: redis.address,
  KVSTORE_SOCKET_TYPE: 'tcp',
};

const send = ({ call }: CounterApi, method: string, entry: string, fields: object = {}) =>
  call('/v1/overrides', { domain: 'shop', descriptors: descriptors(entry), ...fields }, { method });

/** How many requests are allowed until one is refused. */
async function countAllowed({ decide }: CounterApi, entry: string): Promise<number> {
  for (let allowed = 0; ; allowed += 1) if (!(await decide('shop', entry))) return allowed;
}

for (const [store, env] of Object.entries({ memory: cached, redis: overRedis })) {
  t.test(`${store}: an override applies to one counter until it is removed`, async (t) => {
    const app = await startCounterApi(t, { rules, env });
    t.equal(await countAllowed(app, 'user=ann'), 2);
    const fields = { requestsPerUnit: 6, ttlSeconds: 60, reason: 'sale' };
    t.match(await send(app, 'PUT', 'user=ann', fields), {
      status: 200,
      json: { domain: 'shop', requestsPerUnit: 6, reason: 'sale', setBy: 'token', until: /^20.*Z$/ },
    });
    t.equal(await countAllowed(app, 'user=ann'), 3, 'three of six were used, one of them refused');
    t.equal(await countAllowed(app, 'user=bob'), 2, 'other counters keep their limit');
    await send(app, 'PUT', 'bucket=ann', { ...fields, burst: 4 });
    t.equal(await countAllowed(app, 'bucket=ann'), 4);
    await send(app, 'PUT', 'leased=ann', { ...fields, requestsPerUnit: 4 });
    t.equal(await countAllowed(app, 'leased=ann'), 4);
    await send(app, 'PUT', 'path=/files/a', { ...fields, requestsPerUnit: 3 });
    t.equal(await countAllowed(app, 'path=/files/b'), 3, 'the pattern has one counter');
    const peek = { domain: 'shop', descriptors: descriptors('user=ann', 'user=bob') };
    const { json } = await app.call('/v1/counters/peek', peek);
    t.match(json.descriptors, [
      { counter: { requestsPerUnit: 6, remaining: 0, override: { reason: 'sale', setBy: 'token' } } },
      { counter: { requestsPerUnit: 2, override: undefined } },
    ]);
    const explained = await app.explain('shop', 'user=ann', 'bucket=ann');
    t.match(explained.descriptors, [
      { counter: { requestsPerUnit: 6, remaining: 0, override: { until: /^20/, setBy: undefined } } },
      { rule: { requestsPerUnit: 3 }, counter: { burst: 4, remaining: 0 } },
    ]);
    const list = await app.call('/v1/overrides');
    t.match(list.json.overrides, [{ burst: 4 }, {}, {}, { entries: [{ key: 'user', value: 'ann' }] }]);
    t.strictSame((await app.call('/v1/overrides?domain=bank')).json.overrides, []);
    t.match((await app.call('/v1/overrides?limit=1')).json, {
      overrides: [{ burst: 4 }],
      next: 'shop bucket=ann',
    });
    const last = await app.call('/v1/overrides?search=ann&after=shop+path=/files/a');
    t.strictSame((last.json.overrides as unknown[]).length, 1);
    t.match(last.json, { overrides: [{ entries: [{ value: 'ann' }] }], next: undefined });
    for (const entry of ['user=ann', 'bucket=ann', 'leased=ann', 'path=/files/c']) {
      t.equal((await send(app, 'DELETE', entry)).status, 200);
    }
    t.notOk(await app.decide('shop', 'user=ann'));
    t.match(await send(app, 'DELETE', 'user=ann'), { status: 404, json: { code: 'override_not_found' } });
    const actions = app.logLines.filter(({ audit }) => audit === true).map(({ action }) => action);
    t.strictSame(actions, [...Array(4).fill('override'), ...Array(4).fill('remove override')]);
  });
}

t.test('an override applies on all replicas, also on one that starts later, until it ends', async (t) => {
  const options = { rules, env: { ...overRedis, CACHE_KEY_PREFIX: 'replicas:' } };
  const [one, other] = [await startCounterApi(t, options), await startCounterApi(t, options)];
  const refuse = { requestsPerUnit: 0, ttlSeconds: 600, reason: 'abuse' };
  t.equal((await send(one, 'PUT', 'user=eve', refuse)).status, 200);
  await awaitUntil(async () => !(await other.decide('shop', 'user=eve')), { what: 'the override' });
  const late = await startCounterApi(t, options);
  t.notOk(await late.decide('shop', 'user=eve'));
  t.match((await late.call('/v1/overrides')).json.overrides, [{ reason: 'abuse' }]);
  await one.call('/v1/counters/reset', { domain: 'shop', descriptors: descriptors('user=eve') });
  await send(one, 'PUT', 'user=eve', { ...refuse, ttlSeconds: 1 });
  for (const app of [one, other, late]) {
    await awaitUntil(async () => (await app.call('/v1/overrides')).json.overrides?.toString() === '', {
      what: 'its end',
    });
  }
  t.equal(await countAllowed(late, 'user=eve'), 2, 'the over-limit cache has forgotten the other limit');
});

t.test('invalid overrides are refused with the reason', async (t) => {
  const app = await startCounterApi(t, { rules });
  const valid = { requestsPerUnit: 6, ttlSeconds: 60, reason: 'sale' };
  const cases: readonly (readonly [entry: string, fields: object, message: RegExp])[] = [
    ['user=a', { ...valid, requestsPerUnit: -1 }, /requestsPerUnit is a whole number from 0/],
    ['user=a', { ...valid, requestsPerUnit: '6' }, /requestsPerUnit is/],
    ['user=a', { ...valid, ttlSeconds: 0 }, /ttlSeconds is a whole number from 1 to 2678400/],
    ['user=a', { ...valid, reason: ' ' }, /reason is a text/],
    ['user=a', { ...valid, burst: 5 }, /burst is for token buckets/],
    ['bucket=a', { ...valid, burst: 0 }, /burst is a whole number from 1/],
    ['bucket=a', { ...valid, requestsPerUnit: 0, burst: 2 }, /burst has no effect/],
    ['user=a', { ...valid, limit: 5 }, /limit/],
    [`user=${'x'.repeat(5_000)}`, valid, /too long/],
  ];
  for (const [entry, fields, message] of cases) {
    t.match(await send(app, 'PUT', entry, fields), {
      status: 400,
      json: { code: 'malformed_request', message },
    });
  }
  t.match(await send(app, 'PUT', 'other=1', valid), {
    status: 404,
    json: { code: 'descriptor_not_limited' },
  });
  const two = { domain: 'shop', descriptors: descriptors('user=a', 'user=b'), ...valid };
  t.match(await app.call('/v1/overrides', two, { method: 'PUT' }), {
    status: 400,
    json: { message: /one descriptor/ },
  });
});

t.test('the burst of a token bucket changes in proportion, unless the override has one', async (t) => {
  const app = await startCounterApi(t, { rules });
  const put = (requestsPerUnit: number) =>
    send(app, 'PUT', 'bucket=ann', { requestsPerUnit, ttlSeconds: 60, reason: 'sale' });
  t.match(await put(6), { status: 200, json: { requestsPerUnit: 6, burst: 4 } });
  t.equal(await countAllowed(app, 'bucket=ann'), 4);
  t.match(await put(1), { status: 200, json: { burst: 1 } });
  t.match(await put(0), { status: 200, json: { burst: 0 } });
});

t.test('memcached has no overrides and no resets by prefix', async (t) => {
  const memcached = await startMemcached();
  t.teardown(memcached.stop);
  const app = await startCounterApi(t, {
    rules: {
      'shop.yaml':
        'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 2 } }]',
    },
    env: { BACKEND_TYPE: 'memcache', MCACHE_HOST_PORT: memcached.address },
  });
  const refused = { status: 501, json: { code: 'store_lacks_feature' } };
  t.match(await send(app, 'PUT', 'user=a', { requestsPerUnit: 6, ttlSeconds: 60, reason: 'sale' }), refused);
  t.match(await app.call('/v1/counters/reset', { domain: 'shop', prefix: [] }), refused);
});

t.test('the number of overrides is bounded, and ended ones make space', async (t) => {
  let now = 0;
  const { shared } = new MemoryStore({ nowMs: () => now, maxCounters: 10 });
  const logger = { warn: t.fail, error: t.fail, info: t.fail };
  const overrides = new Overrides({
    store: shared,
    nowMs: () => now,
    logger: logger as never,
    onEnded: () => undefined,
  });
  t.teardown(() => overrides.stop());
  const set = (i: number) =>
    overrides.set({
      ...{ domain: 'd', entries: [{ key: 'k', value: `${i}` }], requestsPerUnit: 1, burst: 1 },
      ...{ untilMs: i === 0 ? 1_000_000 : 2_000_000, reason: 'r', setBy: 'token' },
    });
  for (let i = 0; i < maxOverrides; i += 1) await set(i);
  await t.rejects(set(maxOverrides), { code: 'too_many_overrides' });
  await set(maxOverrides - 1);
  now = 1_500_000;
  await overrides.load();
  await set(maxOverrides);
  t.equal(overrides.list().length, maxOverrides);
});

t.test('of thousands of overrides a change reads only what changed, on every replica', async (t) => {
  const prefix = 'thousands:';
  const untilMs = Date.now() + 3_600_000;
  const stored = Array.from({ length: 3_000 }, (_, i) => {
    const override = { domain: 'shop', entries: [{ key: 'user', value: `u${i}` }], requestsPerUnit: 1 };
    const text = JSON.stringify({ ...override, untilMs, reason: 'test', setBy: 'token' });
    return [toName(override.domain, override.entries), text];
  });
  await redisCommand(redis, 'HSET', `${prefix}tollgate:overrides`, ...stored.flat());
  const options = { rules, env: { ...overRedis, CACHE_KEY_PREFIX: prefix } };
  const [one, other] = [await startCounterApi(t, options), await startCounterApi(t, options)];
  t.equal(await countAllowed(other, 'user=u2999'), 1);
  const count = async (name: string) => {
    const stats = String(await redisCommand(redis, 'INFO', 'commandstats'));
    return Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  };
  const readAll = await count('hgetall');
  const readOne = await count('hget');
  const changes = 20;
  for (let i = 0; i < changes; i += 1) {
    const fields = { requestsPerUnit: 3 + i, ttlSeconds: 60, reason: 'test' };
    t.equal((await send(one, 'PUT', `user=n${i}`, fields)).status, 200);
  }
  t.equal((await send(one, 'DELETE', 'user=u7')).status, 200);
  const list = async () => (await other.call('/v1/overrides?limit=10000')).json.overrides as unknown[];
  await awaitUntil(async () => (await list()).length === 3_000 + changes - 1, { what: 'all changes' });
  t.equal(await countAllowed(other, 'user=n0'), 3);
  t.equal(await countAllowed(other, 'user=u7'), 2);
  t.equal(await count('hgetall'), readAll);
  // Each replica gets each message, and the one that made the change applies it at once as well.
  t.ok((await count('hget')) - readOne <= 3 * (changes + 1));
});

t.test('what changed while the store failed is read afterwards', async (t) => {
  const { shared: store } = new MemoryStore({ nowMs: Date.now, maxCounters: 10 });
  const getEntry = store.getEntry.bind(store);
  let reads = 0;
  store.getEntry = async (name) => {
    reads += 1;
    if (reads <= 2) throw new Error('the store is down');
    return await getEntry(name);
  };
  const logger = createLogger({ level: 'fatal', format: 'json' });
  const overrides = new Overrides({ store, nowMs: Date.now, logger, onEnded: () => undefined });
  t.teardown(() => overrides.stop());
  const override = {
    domain: 'd',
    entries: [],
    requestsPerUnit: 1,
    untilMs: Date.now() + 60_000,
    reason: 'r',
    setBy: 't',
  };
  await store.setEntry(toName('d', []), JSON.stringify(override));
  overrides.refresh([toName('d', [])]);
  await awaitUntil(() => overrides.find('d', []) !== undefined, { what: 'the override' });
  t.equal(reads, 3);
});

t.test('the command sets, lists and removes overrides', async (t) => {
  const { base } = await startCounterApi(t, { rules });
  const run = (...args: string[]) => runCounters([...args, '-address', base], { ADMIN_TOKEN: adminToken });
  const target = ['-domain', 'shop', '-descriptors', 'user=ann'];
  const line = /^DOMAIN .*REASON\nshop +user=ann +9 +20\S+Z +token +big sale\n$/;
  const limit = ['-requests-per-unit', '9', '-ttl', '1h', '-reason', 'big sale'];
  t.match(await run('override', ...target, ...limit), { exitCode: 0, output: line });
  t.match(await run('overrides'), { exitCode: 0, output: line });
  t.match(await run('remove-override', ...target), { exitCode: 0, output: 'the override was removed\n' });
  t.match(await run('override', '-domain', 'shop'), {
    exitCode: 2,
    errors: /-descriptors is needed\n-requests-per-unit is needed\n-ttl is a duration.*\n-reason is needed\n/,
  });
});
