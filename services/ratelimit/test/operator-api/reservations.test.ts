import { startMemcached } from '@tollgate/testkit/memcached';
import { startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { runCounters } from '../../src/cli/counters.ts';
import { adminToken, type CounterApi, descriptors, nowMs, startCounterApi } from '../support/counter-api.ts';

const windows = `
domain: llm
descriptors:
  - key: tenant
    rate_limit: { unit: hour, requests_per_unit: 100 }
  - key: day
    rate_limit: { unit: day, requests_per_unit: 50 }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 1 }
`;
const rules = `${windows}
  - key: bucket
    rate_limit: { unit: hour, requests_per_unit: 100, algorithm: token_bucket }
  - key: charged
    rate_limit: { unit: day, requests_per_unit: 100, algorithm: token_bucket, charge: always, max_debt: 50 }
  - key: slots
    rate_limit: { unit: hour, requests_per_unit: 10, algorithm: concurrency }
`;

const [redis, memcached] = await Promise.all([startRedis(), startMemcached()]);
t.teardown(() => Promise.all([redis.stop(), memcached.stop()]));
const overRedis = { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address, KVSTORE_SOCKET_TYPE: 'tcp' };
const stores = {
  memory: {},
  redis: overRedis,
  memcache: { BACKEND_TYPE: 'memcache', MCACHE_HOST_PORT: memcached.address },
};

async function reserve({ call }: CounterApi, hits: number, ...entries: readonly string[]) {
  const { status, json } = await call('/v1/reservations', {
    ...{ domain: 'llm', descriptors: descriptors(...entries), hits },
  });
  return { status, json, id: String(json.id) };
}

const commit = ({ call }: CounterApi, id: string, hits: number) =>
  call('/v1/reservations/commit', { id, hits });

async function countOf({ call }: CounterApi, entry: string): Promise<number | undefined> {
  const { json } = await call('/v1/counters/peek', { domain: 'llm', descriptors: descriptors(entry) });
  return (json.descriptors as { counter: { count: number } }[])[0]?.counter.count;
}

for (const [store, env] of Object.entries({ memory: {}, redis: overRedis })) {
  t.test(`${store}: a commit charges more than is left, a refused reservation nothing`, async (t) => {
    const app = await startCounterApi(t, { rules: { 'llm.yaml': rules }, env });
    const key = 'charged=a';
    t.equal((await reserve(app, 100, key)).status, 200);
    const refused = await reserve(app, 40, key);
    t.equal(refused.status, 429);
    const wait = Number(refused.json.retryAfterSeconds);
    t.ok(wait > 0.39 * 86_400 && wait <= 0.4 * 86_400, `40 hits are left after ${wait} s`);
    t.equal(
      Number((await reserve(app, 40, key)).json.retryAfterSeconds) <= wait,
      true,
      'nothing was charged',
    );
    const { id } = await reserve(app, 10, 'charged=b');
    t.match(await commit(app, id, 120), { status: 200, json: { reserved: 10, hits: 120, over: true } });
    // 20 of debt: 21 until one is left.
    const state = (await app.explain('llm', 'charged=b')).descriptors as {
      counter: Record<string, number>;
    }[];
    const reset = state[0]?.counter.resetSeconds ?? 0;
    t.match(state[0]?.counter, { count: 100, remaining: 0 });
    t.ok(reset > 0.2 * 86_400 && reset <= 0.21 * 86_400, `reset in ${reset} s`);
  });
}

for (const [store, env] of Object.entries(stores)) {
  t.test(`${store}: a reservation takes an estimate, and is committed once`, async (t) => {
    const isMemcache = store === 'memcache';
    const app = await startCounterApi(t, {
      rules: { 'llm.yaml': isMemcache ? windows : rules },
      env: { ...env, LOCAL_CACHE_SIZE_IN_BYTES: '600000' },
    });
    const keys = isMemcache ? ['tenant=a'] : ['tenant=a', 'bucket=a'];
    const { status, id, json } = await reserve(app, 60, ...keys);
    t.equal(status, 200);
    t.ok(Math.abs(Date.parse(String(json.until)) - nowMs() - 60_000) < 30_000);
    const refused = await reserve(app, 41, ...keys);
    t.match(refused, { status: 429, json: { code: 'over_limit' } });
    t.ok(Number(refused.json.retryAfterSeconds) >= 1);
    t.equal((await reserve(app, 41, 'tenant=a', 'day=a')).status, 429, 'one of two limits');
    for (const key of keys) t.equal(await countOf(app, key), 60, `${key}: refused ones take nothing`);
    t.equal(await countOf(app, 'day=a'), 0);

    const commits = await Promise.all([25, 25, 25, 25].map((hits) => commit(app, id, hits)));
    t.strictSame(commits.map((reply) => reply.status).sort(), [200, 409, 409, 409]);
    t.match(commits.find((reply) => reply.status === 200)?.json, { reserved: 60, hits: 25, over: false });
    for (const key of keys) t.equal(await countOf(app, key), 25, `${key}: the real number`);

    const racing = await Promise.all(Array.from({ length: 8 }, () => reserve(app, 75, ...keys)));
    t.equal(
      racing.filter((reply) => reply.status === 200).length,
      1,
      'concurrent ones do not exceed the limit',
    );
    t.equal(await countOf(app, 'tenant=a'), 100);
    t.notOk(await app.decide('llm', 'tenant=a'));
    const accepted = racing.find((reply) => reply.status === 200)?.id ?? '';
    t.match(await commit(app, accepted, 0), { status: 200, json: { hits: 0 } });
    t.ok(await app.decide('llm', 'tenant=a'), 'the over-limit cache has forgotten the counter');
    const { id: small } = await reserve(app, 1, 'tenant=b', 'shadow=b');
    t.match(await commit(app, small, 150), { status: 200, json: { reserved: 1, hits: 150, over: true } });
    t.equal(await countOf(app, 'tenant=b'), 150);
    for (const [key, limit] of Object.entries(isMemcache ? {} : { 'bucket=b': 100, 'slots=b': 10 })) {
      const { id } = await reserve(app, 4, key);
      t.match(await commit(app, id, 150), { status: 200, json: { reserved: 4, hits: 150, over: true } });
      t.equal(await countOf(app, key), limit, `${key}: nothing is left`);
    }
    t.equal((await reserve(app, 5, 'shadow=b')).status, 200, 'shadow mode refuses none');
  });
}

t.test('a refused reservation has no effect on limits of other algorithms', async (t) => {
  const app = await startCounterApi(t, { rules: { 'llm.yaml': rules } });
  const { id } = await reserve(app, 6, 'slots=a');
  t.equal((await reserve(app, 5, 'slots=a')).status, 429);
  t.equal(await countOf(app, 'slots=a'), 6);
  await commit(app, id, 0);
  t.equal(await countOf(app, 'slots=a'), 0);
});

const limits = `
  - { key: bucket, rate_limit: { unit: second, requests_per_unit: 1, algorithm: token_bucket, burst: 700 } }
  - { key: sliding, rate_limit: { unit: hour, requests_per_unit: 10, algorithm: sliding_window } }
  - { key: slots, rate_limit: { unit: minute, requests_per_unit: 10, algorithm: concurrency } }
  - { key: hour, rate_limit: { unit: hour, requests_per_unit: 100 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: quota, quota_mode: true, rate_limit: { unit: minute, requests_per_unit: 4 } }
  - { key: other, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 9 } }
`;
const kinds = {
  'llm.yaml': `domain: llm\ndescriptors:${limits}`,
  'all.yaml': `domain: all\natomic: true\ndescriptors:${limits}`,
};

t.test('a refused reservation says when a decision would allow its hits', async (t) => {
  // In the middle of an hour, and of a minute.
  const app = await startCounterApi(t, {
    rules: kinds,
    env: { LIMIT_STANDARD_HEADERS_ENABLED: 'true' },
    nowMs: () => 1_800_001_830_000,
  });
  const decide = async (domain: string, hits: number, entries: readonly string[]) => {
    const body = { domain, descriptors: descriptors(...entries), hits_addend: hits };
    const url = `http://127.0.0.1:${app.ports.http}/json`;
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
    const [, wait] = /"Retry-After","value":"(\d+)"/.exec(await response.text()) ?? [];
    return { status: response.status, wait: Number(wait) };
  };
  for (const domain of ['llm', 'all']) {
    const cases: readonly (readonly [first: number, hits: number, wait: number, ...entries: string[]])[] = [
      [100, 605, 5, 'bucket=a'],
      [6, 5, 2_370, 'sliding=a'],
      [6, 5, 60, 'slots=a'],
      [60, 50, 1_770, 'hour=a'],
      [3, 3, 30, 'quota=a', 'other=a'],
    ];
    for (const [first, hits, wait, ...entries] of cases) {
      const ask = async (hits: number) =>
        app.call('/v1/reservations', { domain, descriptors: descriptors(...entries), hits });
      const what = `${domain} ${entries.join()}`;
      t.equal((await ask(first)).status, 200, what);
      if (entries.length > 1) t.equal((await ask(6)).status, 200, `${what}: a quota is left`);
      t.match(await ask(hits), { status: 429, json: { retryAfterSeconds: wait } }, what);
      t.strictSame(await decide(domain, hits, entries), { status: 429, wait }, `${what}: the decision`);
    }
  }
});

t.test('hits that never fit are refused for good, others until they fit', async (t) => {
  const app = await startCounterApi(t, { rules: kinds });
  for (const entry of ['bucket=a', 'sliding=a', 'slots=a', 'hour=a']) {
    const { status, json } = await reserve(app, 701, entry, 'shadow=a');
    t.equal(status, 400, entry);
    t.match(json, {
      code: 'reservation_too_large',
      message: /\(llm\.(bucket: 700|sliding: 10|slots: 10|hour: 100)\)/,
    });
  }
  t.equal((await reserve(app, 5, 'quota=a', 'other=a')).status, 200, 'another quota is large enough');
  t.equal((await reserve(app, 10, 'quota=b', 'other=b')).status, 400, 'no quota is');
  const override = { requestsPerUnit: 0, ttlSeconds: 60, reason: 'test' };
  const body = { domain: 'llm', descriptors: descriptors('hour=a'), ...override };
  t.equal((await app.call('/v1/overrides', body, { method: 'PUT' })).status, 200);
  t.equal((await reserve(app, 1, 'hour=a')).status, 429, 'the override ends');
});

t.test('with QUOTA_MODE, a descriptor without a limit is a quota that is left', async (t) => {
  const app = await startCounterApi(t, { rules: kinds, env: { QUOTA_MODE: 'true' } });
  for (const hits of [100, 50, 101]) {
    t.equal((await reserve(app, hits, 'hour=a', 'free=a')).status, 200);
  }
  t.equal((await reserve(app, 50, 'hour=a')).status, 429);
});

t.test('reservations of an atomic domain are decided together', async (t) => {
  const env = { ...overRedis, CACHE_KEY_PREFIX: 'all:' };
  const app = await startCounterApi(t, { rules: kinds, env });
  const ask = (hits: number, ...entries: readonly string[]) =>
    app.call('/v1/reservations', { domain: 'all', descriptors: descriptors(...entries), hits });
  const replies = await Promise.all(
    Array.from({ length: 8 }, () => ask(6, 'hour=a', 'slots=a', 'sliding=a')),
  );
  t.strictSame(replies.map(({ status }) => status).sort(), [200, ...Array(7).fill(429)]);
  const peek = { domain: 'all', descriptors: descriptors('hour=a', 'slots=a', 'sliding=a') };
  const { json } = await app.call('/v1/counters/peek', peek);
  t.match(json.descriptors, Array(3).fill({ counter: { count: 6 } }));
  const id = replies.find(({ status }) => status === 200)?.json.id;
  t.equal((await commit(app, String(id), 1)).status, 200);
  t.match(
    (await app.call('/v1/counters/peek', peek)).json.descriptors,
    Array(3).fill({ counter: { count: 1 } }),
  );
});

t.test('an id is valid on every replica until it expires, and only unchanged', async (t) => {
  let offsetMs = 0;
  const options = {
    rules: { 'llm.yaml': rules },
    env: { ...overRedis, CACHE_KEY_PREFIX: 'ids:' },
    nowMs: () => nowMs() + offsetMs,
  };
  const [one, other] = [await startCounterApi(t, options), await startCounterApi(t, options)];
  const { id } = await reserve(one, 50, 'tenant=a');
  const [content = '', signature = ''] = id.split('.');
  const changed = Buffer.from(Buffer.from(content, 'base64url').toString().replace('50', '99'));
  for (const bad of ['x', content, `${changed.toString('base64url')}.${signature}`]) {
    t.match(await commit(one, bad, 0), { status: 400, json: { code: 'reservation_invalid' } });
  }
  for (const hits of [-1, 1.5, '1', 2 ** 33]) t.equal((await commit(one, id, hits as number)).status, 400);
  t.equal((await commit(other, id, 20)).status, 200);
  t.equal((await commit(one, id, 20)).status, 409);
  t.equal(await countOf(one, 'tenant=a'), 20);

  const expiring = await reserve(one, 10, 'tenant=c');
  offsetMs = 61_000;
  t.match(await commit(one, expiring.id, 0), { status: 410, json: { code: 'reservation_expired' } });
  offsetMs = 0;
  t.equal(await countOf(one, 'tenant=c'), 10, 'the estimate stays counted');
});

t.test('invalid reservations are refused; hits are in the statistics of the rule', async (t) => {
  const app = await startCounterApi(t, { rules: { 'llm.yaml': rules } });
  t.match(await reserve(app, 0, 'tenant=a'), {
    status: 400,
    json: { message: /hits is a whole number from 1/ },
  });
  t.match(await reserve(app, 1, 'other=a'), { status: 404, json: { code: 'descriptor_not_limited' } });
  const long = Array.from({ length: 90 }, (_, i) => `tenant=${i}${'x'.repeat(200)}`);
  t.match(await reserve(app, 1, ...long), { status: 400, json: { message: /too long/ } });
  const { id } = await reserve(app, 90, 'tenant=a');
  await commit(app, id, 30);
  await reserve(app, 71, 'tenant=a');
  const rule = app.stats.rule('llm', ['tenant']);
  t.match(rule, { totalHits: 90, totalNegativeHits: 60, withinLimit: 90, overLimit: 0 });
  const { json } = await app.call('/v1/refusals');
  t.match(json.refusals, [{ rule: 'tenant', hits: 71, code: 'OVER_LIMIT' }]);
});

t.test('the command reserves and commits', async (t) => {
  const { base } = await startCounterApi(t, { rules: { 'llm.yaml': rules } });
  const run = (...args: string[]) => runCounters([...args, '-address', base], { ADMIN_TOKEN: adminToken });
  const target = ['-domain', 'llm', '-descriptors', 'tenant=a'];
  const reserved = await run('reserve', ...target, '-hits', '80');
  t.match(reserved, { exitCode: 0, output: /^\S+\.\S+\nuntil 20\S+Z\n$/ });
  const refused = await run('reserve', ...target, '-hits', '80', '-ttl', '5m');
  t.match(refused, { exitCode: 3, errors: /^over_limit: / });
  const json = await run('reserve', ...target, '-hits', '80', '-json');
  t.match(
    [json.exitCode, JSON.parse(json.output ?? '')],
    [3, { code: 'over_limit', retryAfterSeconds: Number }],
  );
  const [id = ''] = reserved.output?.split('\n') ?? [];
  t.match(await run('commit', '-id', id, '-hits', '7'), { output: '7 counted, 80 were reserved\n' });
  t.match(await run('commit', '-hits', '7'), { exitCode: 2, errors: /-id and -hits are needed/ });
});
