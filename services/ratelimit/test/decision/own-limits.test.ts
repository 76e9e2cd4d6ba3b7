import { startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { Code } from '../../src/decision/wire/response.ts';
import { backendFailure } from '../../src/errors.ts';
import { type CounterApi, startCounterApi } from '../support/counter-api.ts';
import { connect, descriptorsOf } from '../support/grpc-client.ts';
import { descriptor, makeDecider } from '../support/make-decider.ts';

const yaml = `
domain: d
descriptors:
  - { key: plain, rate_limit: { unit: minute, requests_per_unit: 5 } }
  - { key: bucket, rate_limit: { unit: minute, requests_per_unit: 60, algorithm: token_bucket, burst: 20 } }
  - { key: sliding, rate_limit: { unit: hour, requests_per_unit: 1, algorithm: sliding_window } }
  - { key: slots, rate_limit: { period: 10m, requests_per_unit: 1, algorithm: concurrency } }
  - { key: day, rate_limit: { unit: day, requests_per_unit: 1, time_zone: Asia/Tokyo } }
  - { key: period, rate_limit: { period: 5m, requests_per_unit: 1 } }
  - { key: leased, rate_limit: { unit: hour, requests_per_unit: 100, lease: 10% } }
  - { key: denied, rate_limit: { unit: hour, requests_per_unit: 9, on_store_failure: deny } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 9 } }
  - key: path
    value: /files/*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 9, algorithm: token_bucket }
  - key: plain-path
    value: /files/*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 9 }
`;

/** Numbers on the wire. */
const [second, hour, day, month] = [1, 3, 4, 5];

const redis = await startRedis();
t.teardown(redis.stop);
const stores = {
  memory: {},
  redis: { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address, KVSTORE_SOCKET_TYPE: 'tcp' },
};

interface OwnLimit {
  readonly requestsPerUnit: number;
  readonly unit: number;
}

/** A request with one descriptor that has its own limit. */
const requestOf = (key: string, limit: OwnLimit, value = 'x') => ({
  domain: 'd',
  descriptors: descriptorsOf({ [key]: value }).map((one) => ({ ...one, limit })),
});

async function explainOwn({ ports }: CounterApi, request: object) {
  const response = await fetch(`http://127.0.0.1:${ports.debug}/explain`, {
    method: 'POST',
    headers: { accept: 'application/json' },
    body: JSON.stringify(request),
  });
  // Parsed boundary: the page is written by the service under test.
  const { overrides } = (await response.json()) as { readonly overrides: readonly { counter?: object }[] };
  return overrides[0];
}

for (const [store, env] of Object.entries(stores)) {
  t.test(`${store}: a limit of a descriptor is counted as its rule says`, async (t) => {
    const app = await startCounterApi(t, { rules: { 'd.yaml': yaml }, env });
    const client = connect(t, `127.0.0.1:${app.ports.grpc}`);
    const countAllowed = async (key: string, limit: OwnLimit): Promise<number> => {
      for (let allowed = 0; ; allowed += 1) {
        const { overallCode } = await client.shouldRateLimit(requestOf(key, limit));
        if (overallCode === Code.OVER_LIMIT) return allowed;
      }
    };
    const cases = [
      {
        key: 'bucket',
        limit: { requestsPerUnit: 6, unit: hour },
        allowed: 2,
        counter: 'd_bucket_x_token_bucket',
      },
      {
        key: 'sliding',
        limit: { requestsPerUnit: 3, unit: day },
        allowed: 3,
        counter: 'd_sliding_x_sliding_window',
      },
      {
        key: 'slots',
        limit: { requestsPerUnit: 4, unit: second },
        allowed: 4,
        counter: 'd_slots_x_concurrency',
      },
      {
        key: 'day',
        limit: { requestsPerUnit: 2, unit: day },
        allowed: 2,
        counter: /^d_day_x_day_Asia\/Tokyo_/,
      },
      { key: 'day', limit: { requestsPerUnit: 3, unit: month }, allowed: 3, counter: /_month_Asia\/Tokyo_/ },
      { key: 'day', limit: { requestsPerUnit: 1, unit: hour }, allowed: 1, counter: /^d_day_x_\d+$/ },
      { key: 'plain', limit: { requestsPerUnit: 3, unit: hour }, allowed: 3, counter: /^d_plain_x_\d+$/ },
      { key: 'period', limit: { requestsPerUnit: 3, unit: hour }, allowed: 3, counter: /^d_period_x_\d+$/ },
      { key: 'leased', limit: { requestsPerUnit: 20, unit: hour }, allowed: 20, counter: /^d_leased_x_\d+$/ },
      { key: 'none', limit: { requestsPerUnit: 2, unit: hour }, allowed: 2, counter: /^d_none_x_\d+$/ },
    ];
    for (const { key, limit, allowed, counter } of cases) {
      t.equal(await countAllowed(key, limit), allowed, key);
      const request = requestOf(key, limit);
      const explained = await explainOwn(app, request);
      const rule = key === 'none' ? undefined : `d.${key}`;
      t.match(explained, { rule, counter: { key: counter, remaining: 0, over: true } }, key);
      const peeked = (await app.call('/v1/counters/peek', request)).json;
      t.match(peeked, { wouldBeRefused: true, descriptors: [{ counter: { key: counter, over: true } }] });
    }
    const series = [...app.stats.rules()].find(({ key }) => key === 'd.bucket_x');
    t.match(series, { totalHits: 3, withinLimit: 2, overLimit: 1 });

    const slots = requestOf('slots', { requestsPerUnit: 4, unit: second });
    const [one] = slots.descriptors;
    await client.shouldRateLimit({ domain: 'd', descriptors: [{ ...one, isNegativeHits: true }] });
    const taken = await client.shouldRateLimit(slots);
    t.equal(taken.overallCode, Code.OK, 'a refund released a slot');
    t.equal(taken.statuses[0]?.durationUntilReset?.seconds, 600n, 'slots live as long as the rule says');

    const shadowed = await client.shouldRateLimit(requestOf('shadow', { requestsPerUnit: 0, unit: hour }));
    t.match(shadowed, { overallCode: Code.OK, statuses: [{ code: Code.OK, limitRemaining: 0 }] });
  });

  t.test(`${store}: a reservation keeps the limit of its descriptor`, async (t) => {
    const app = await startCounterApi(t, {
      rules: { 'd.yaml': yaml },
      env: { ...env, CACHE_KEY_PREFIX: 'reserved:' },
    });
    const request = requestOf('sliding', { requestsPerUnit: 10, unit: hour });
    const reserved = await app.call('/v1/reservations', { ...request, hits: 4 });
    t.equal(reserved.status, 200);
    const committed = await app.call('/v1/reservations/commit', { id: reserved.json.id, hits: 7 });
    t.match(committed.json, { over: false });
    t.match((await explainOwn(app, request))?.counter, { count: 7, remaining: 3 });
  });
}

t.test('the burst of a token bucket keeps its part of the limit', async (t) => {
  const { ask, added } = makeDecider({ yaml });
  const burstOf = async (requestsPerUnit: number) => {
    await ask([descriptor({ bucket: 'x' }, { limit: { requestsPerUnit, unit: hour } })]);
    return added.at(-1)?.[0]?.rate;
  };
  t.match(await burstOf(600), { limit: 600, burst: 200, periodSeconds: 3_600 });
  t.match(await burstOf(1), { limit: 1, burst: 1 });
  t.match(await burstOf(0), { limit: 0, burst: 0 });
  t.match(await burstOf(2 ** 32 - 1), { burst: Math.ceil((2 ** 32 - 1) / 3) });
});

t.test('only where the rule counts as the original does, share_threshold has no effect', async (t) => {
  const { ask, added } = makeDecider({ yaml });
  const keyOf = async (key: string) => {
    await ask([descriptor({ [key]: '/files/a' }, { limit: { requestsPerUnit: 9, unit: hour } })]);
    return added.at(-1)?.[0]?.key;
  };
  t.equal(await keyOf('path'), 'd_path_/files/*_token_bucket');
  t.equal(await keyOf('plain-path'), 'd_plain-path_/files/a_997200');
});

t.test('while the store fails, the policy of the rule decides', async (t) => {
  const fail = () => Promise.reject(backendFailure('the store is down'));
  const { ask } = makeDecider({ yaml, store: { take: fail, peek: fail } });
  const limit = { requestsPerUnit: 9, unit: hour };
  t.match(await ask([descriptor({ denied: 'x' }, { limit })]), { overallCode: Code.OVER_LIMIT });
  await t.rejects(ask([descriptor({ plain: 'x' }, { limit })]), { message: /the store is down/ });
});
