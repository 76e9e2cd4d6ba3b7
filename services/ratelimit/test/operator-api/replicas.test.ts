import { readFile } from 'node:fs/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
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

t.test('changes that fail half-way have an audit line and are announced', async (t) => {
  const deny = (...rights: readonly string[]) =>
    redisCommand(redis, ...'ACL SETUSER half on >secret ~* &* +@all'.split(' '), ...rights);
  await deny();
  const env = { ...options.env, KVSTORE_AUTH: 'half:secret', CACHE_KEY_PREFIX: 'half:' };
  const [app, other] = [
    await startCounterApi(t, { ...options, env }),
    await startCounterApi(t, { ...options, env }),
  ];
  const request = { domain: 'shop', descriptors: descriptors('user=ann') };
  const byPrefix = { domain: 'shop', prefix: [] };
  const override = { ...request, requestsPerUnit: 9, ttlSeconds: 60, reason: 'test' };
  const isUnavailable = { status: 503, json: { code: 'backend_failure' } };

  await deny('-publish');
  for (const [path, body, method] of [
    ['/v1/counters/reset', request, 'POST'],
    ['/v1/counters/reset', byPrefix, 'POST'],
    ['/v1/overrides', override, 'PUT'],
    ['/v1/overrides', request, 'DELETE'],
  ] as const) {
    t.match(await app.call(path, body, { method }), isUnavailable, `${method} ${path}`);
  }
  await deny('-expire');
  t.match(await app.call('/v1/overrides', override, { method: 'PUT' }), isUnavailable);
  await awaitUntil(async () => (await other.call('/v1/overrides')).json.overrides?.toString() !== '', {
    what: 'the override on the other replica',
  });
  await deny();
  t.equal((await app.call('/v1/overrides', request, { method: 'DELETE' })).status, 200);
  t.ok(await app.decide('shop', 'user=ann'));
  await deny('-unlink');
  t.match(await app.call('/v1/counters/reset', byPrefix), isUnavailable);
  const lines = app.logLines.filter(({ audit }) => audit === true);
  t.match(lines, [
    { action: 'reset', outcome: 'not announced', keys: [/^half:shop_user_ann_/], caller: 'token', err: {} },
    { action: 'reset by prefix', outcome: 'not announced', prefixes: ['half:shop_'], deleted: 0 },
    { action: 'override', outcome: 'not announced', reason: 'test' },
    { action: 'remove override', outcome: 'not announced' },
    { action: 'override', outcome: 'failed', err: {} },
    { action: 'remove override', outcome: 'done', err: undefined },
    { action: 'reset by prefix', outcome: 'failed', prefixes: ['half:shop_'], err: {} },
  ]);
  t.equal(lines.length, 7);
});

t.test('the permissions in the documentation are sufficient', async (t) => {
  const pages = ['counter-stores', 'counter-api'].map((page) =>
    readFile(new URL(`../../../../docs/${page}.md`, import.meta.url), 'utf8'),
  );
  const [stores = '', api = ''] = await Promise.all(pages);
  const find = (text: string, part: RegExp) => part.exec(text)?.[1]?.split(' ') ?? [];
  const rights = [
    ...find(stores, /\*\*Permissions\*\* [^`]+`([^`]+)`/),
    ...find(stores, /also need `(\+eval [^`]+)`/),
    ...find(api, /with ACLs [^`]+`([^`]+)`/),
  ];
  await redisCommand(redis, ...'ACL SETUSER limiter on >secret resetchannels'.split(' '), ...rights);
  const limit = 'rate_limit: { unit: hour, requests_per_unit: 5, algorithm:';
  const algorithms = `
  - { key: b, ${limit} token_bucket } }
  - { key: s, ${limit} sliding_window } }
  - { key: c, ${limit} concurrency } }
  - { key: l, rate_limit: { unit: hour, requests_per_unit: 50, lease: 50% } }
`;
  const app = await startCounterApi(t, {
    rules: {
      'shop.yaml': rules + algorithms,
      'all.yaml': `domain: all\natomic: true\ndescriptors:${algorithms}  - { key: user, ${limit} fixed_window } }\n`,
    },
    env: { ...options.env, KVSTORE_AUTH: 'limiter:secret', CACHE_KEY_PREFIX: 'acl:' },
  });
  const all = ['user=x', 'b=x', 's=x', 'c=x', 'l=x'];
  for (const domain of ['shop', 'all']) t.ok(await app.decide(domain, ...all), domain);
  const request = { domain: 'all', descriptors: descriptors(...all) };
  const { status, json } = await app.call('/v1/reservations', { ...request, hits: 2 });
  t.equal(status, 200);
  t.match(await app.call('/v1/reservations/commit', { id: json.id, hits: 1 }), { status: 200 });
  const one = { domain: 'shop', descriptors: descriptors('user=x') };
  const override = { ...one, requestsPerUnit: 9, ttlSeconds: 60, reason: 'test' };
  t.match(await app.call('/v1/overrides', override, { method: 'PUT' }), { status: 200 });
  t.match(await app.call('/v1/overrides', one, { method: 'DELETE' }), { status: 200 });
  t.match(await app.call('/v1/counters/reset', one), { status: 200 });
  t.match(await app.call('/v1/counters/reset', { domain: 'all', prefix: [] }), { json: { deleted: 5 } });
});
