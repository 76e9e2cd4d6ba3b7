import { fromBinary } from '@bufbuild/protobuf';
import { RateLimitResponseSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { Windows } from '@tollgate/rules/windows';
import t from 'tap';
import { toWindowResult } from '../../src/algorithms/fixed-window.ts';
import { encodeDecision } from '../../src/decision/wire/codec.ts';
import { Code } from '../../src/decision/wire/response.ts';
import { take } from '../support/counts.ts';
import { descriptor, makeDecider } from '../support/make-decider.ts';

const { OK, OVER_LIMIT } = Code;

const yaml = `
domain: d
descriptors:
  - key: minute
    rate_limit: { name: per-minute, unit: minute, requests_per_unit: 2 }
  - key: hour
    rate_limit: { unit: hour, requests_per_unit: 10 }
  - key: blocked
    rate_limit: { unit: day, requests_per_unit: 0 }
  - key: free
    rate_limit: { unlimited: true }
  - key: freeQuota
    quota_mode: true
    rate_limit: { unlimited: true }
  - key: spare
    rate_limit: { name: spare, unlimited: true }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: quota
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: nested
    descriptors:
      - key: inner
        rate_limit: { unit: second, requests_per_unit: 5 }
  - key: strict
    rate_limit: { unit: minute, requests_per_unit: 1, replaces: [{ name: per-minute }, { name: spare }] }
  - key: files
    value: files/*
    share_threshold: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
`;

t.test('requests above the limit are OVER_LIMIT; statuses have limit, remaining and reset', async (t) => {
  const { ask } = makeDecider({ yaml, nowSeconds: 1_000_000 });
  const currentLimit = { requestsPerUnit: 2, unit: 'minute', name: 'per-minute' };
  for (const [code, limitRemaining] of [
    [OK, 1],
    [OK, 0],
    [OVER_LIMIT, 0],
    [OVER_LIMIT, 0],
  ] as const) {
    const decision = await ask([descriptor({ minute: 'a' })]);
    t.match(decision, {
      overallCode: code,
      statuses: [{ code, currentLimit, limitRemaining, secondsUntilReset: 20 }],
      responseHeaders: [],
    });
  }
});

t.test('a new window resets the counter', async (t) => {
  const { ask, clock } = makeDecider({ yaml, nowSeconds: 1_000_000 });
  for (let i = 0; i < 3; i += 1) {
    await ask([descriptor({ minute: 'a' })]);
  }
  clock.nowSeconds = 1_000_020;
  t.match(await ask([descriptor({ minute: 'a' })]), {
    overallCode: OK,
    statuses: [{ limitRemaining: 1, secondsUntilReset: 60 }],
  });
});

t.test('each value has a separate counter', async (t) => {
  const { ask } = makeDecider({ yaml });
  for (const value of ['a', 'b', 'c']) {
    t.match(await ask([descriptor({ minute: value })]), { statuses: [{ limitRemaining: 1 }] });
  }
});

t.test('several descriptors: each has a status, and one over its limit is enough', async (t) => {
  const { ask } = makeDecider({ yaml });
  const decision = await ask([
    descriptor({ minute: 'a' }),
    descriptor({ blocked: 'x' }),
    descriptor({ nothing: 'y' }),
  ]);
  t.equal(decision.overallCode, OVER_LIMIT);
  t.same(
    decision.statuses.map(({ code }) => code),
    [OK, OVER_LIMIT, OK],
  );
});

t.test('a descriptor without a rule is OK and not counted', async (t) => {
  const { ask, added, stats } = makeDecider({ yaml });
  t.same((await ask([descriptor({ nothing: 'x' })])).statuses, [
    { code: OK, limitRemaining: 0, quota: false },
  ]);
  t.same(added, []);
  t.same([...stats.rules()], []);
});

t.test('the unknown domain of a policy is an error, not an unlimited request', async (t) => {
  const { ask, stats } = makeDecider({ yaml });
  const domain = 'policy/shop/orders';
  await t.rejects(ask([descriptor({ limit: 'per-user' })], { domain }), {
    code: 'unknown_policy',
    message: 'the limiter has no rules of this policy: policy/shop/orders',
  });
  t.equal(stats.domainNotFound(domain).value, 1);
  t.match(await ask([descriptor({ minute: 'a' })], { domain: 'policy' }), { overallCode: OK });
});

t.test('an unknown domain is OK for every descriptor and counted as not found', async (t) => {
  const { ask, stats } = makeDecider({ yaml });
  const decision = await ask([descriptor({ minute: 'x' }), descriptor({ hour: 'x' })], { domain: 'other' });
  t.same(decision.statuses, [
    { code: OK, limitRemaining: 0, quota: false },
    { code: OK, limitRemaining: 0, quota: false },
  ]);
  t.equal(stats.domainNotFound('other').value, 2);
});

t.test('an unlimited descriptor is ignored in quota mode', async (t) => {
  const everywhere = makeDecider({ yaml, quotaMode: true });
  const byRule = makeDecider({ yaml });
  const over = descriptor({ blocked: 'x' });
  for (const all of [
    [descriptor({ free: 'x' }), over],
    [over, descriptor({ free: 'x' })],
  ]) {
    t.equal((await everywhere.ask(all)).overallCode, OVER_LIMIT);
  }
  await byRule.ask([descriptor({ quota: 'x' })]);
  const decision = await byRule.ask([descriptor({ freeQuota: 'x' }), descriptor({ quota: 'x' })]);
  t.equal(decision.overallCode, OVER_LIMIT);
  t.match(decision.statuses, [{ code: OK, limitRemaining: 4_294_967_295 }, { code: OVER_LIMIT }]);
  t.equal((await everywhere.ask([descriptor({ free: 'x' })])).overallCode, OK, 'alone it is OK');
});

t.test('a replaced unlimited rule stays unlimited in the response', async (t) => {
  const { ask } = makeDecider({ yaml });
  const { statuses } = await ask([descriptor({ spare: 'x' }), descriptor({ strict: 'x' })]);
  t.match(statuses, [
    { code: OK, limitRemaining: 4_294_967_295 },
    { code: OK, limitRemaining: 0 },
  ]);
});

t.test('unlimited rules have the maximum remaining and do not call the store', async (t) => {
  const { ask, added, rule } = makeDecider({ yaml });
  t.same((await ask([descriptor({ free: 'x' })])).statuses, [
    { code: OK, limitRemaining: 4_294_967_295, quota: false },
  ]);
  t.same(added, []);
  t.equal(rule('free').totalHits, 0);
});

t.test('requests_per_unit 0 rejects every hit, but 0 hits are OK', async (t) => {
  const { ask } = makeDecider({ yaml });
  t.equal((await ask([descriptor({ blocked: 'x' }, { hitsAddend: 0n })])).overallCode, OK);
  t.equal((await ask([descriptor({ blocked: 'x' })])).overallCode, OVER_LIMIT);
});

t.test('a counter is named by domain, entries and window, byte for byte', async (t) => {
  const { ask, added } = makeDecider({ yaml, nowSeconds: 1_234 });
  await ask([
    descriptor({ minute: 'value' }),
    descriptor({ nested: 'a', inner: '' }),
    descriptor({ files: 'files/x' }),
  ]);
  t.same(
    added[0]?.map(({ key }) => key),
    ['d_minute_value_1200', 'd_nested_a_inner__1234', 'd_files_files/*_1200'],
  );
});

t.test('a rule with a lease has the answers and statistics of one without', async (t) => {
  for (const options of [
    {},
    { localCache: true },
    { stopIncrementWhenOverLimit: true },
    { shadowMode: true },
  ]) {
    const hits = [1, 1, 0, 2, 3, 1, 1, 1, 4, 0, 1, 5, 1, 1, 0, 2];
    const ask = async (lease: string) => {
      const rateLimit = `rate_limit: { unit: minute, requests_per_unit: 20${lease} }`;
      const rules = `domain: d\ndescriptors: [{ key: a, ${rateLimit} }, { key: b, shadow_mode: true, ${rateLimit} }]`;
      const { ask, added, rule } = makeDecider({ yaml: rules, ...options });
      const decisions = [];
      for (const hitsAddend of hits) {
        const more = { hitsAddend: BigInt(hitsAddend) };
        decisions.push(await ask([descriptor({ a: '1' }, more), descriptor({ b: '1' }, more)]));
      }
      const statuses = decisions.map(({ overallCode, statuses: all }) => [
        overallCode,
        ...all.map(({ code, limitRemaining, currentLimit }) => [code, limitRemaining, currentLimit?.name]),
      ]);
      return { hits: added.flat().length, outcome: { statuses, rules: [rule('a'), rule('b')] } };
    };
    const plain = await ask('');
    const leased = await ask(', lease: 50%');
    t.same(leased.outcome, plain.outcome, JSON.stringify(options));
    t.ok(leased.hits < plain.hits, `${leased.hits} and ${plain.hits} hits are sent`);
  }
});

const periods = `
domain: d
descriptors:
  - key: five
    rate_limit: { period: 5m, requests_per_unit: 2 }
  - key: one
    rate_limit: { period: 1s, requests_per_unit: 2 }
  - key: bucket
    rate_limit: { period: 10m, requests_per_unit: 60, algorithm: token_bucket }
  - key: berlin
    rate_limit: { unit: day, time_zone: Europe/Berlin, requests_per_unit: 2 }
`;

t.test('a period has windows and keys of its own, and no unit on the wire', async (t) => {
  const { ask, added, clock } = makeDecider({ yaml: periods, nowSeconds: 1_000_199, standardHeaders: true });
  const five = [descriptor({ five: 'x' })];
  const { statuses, responseHeaders } = await ask(five);
  t.match(statuses, [
    { code: OK, limitRemaining: 1, secondsUntilReset: 1, currentLimit: { unit: undefined } },
  ]);
  t.match(responseHeaders, [{ value: '"five";q=2;w=300' }, { value: '"five";r=1;t=1' }]);
  t.match(await ask(five, { hitsAddend: 2 }), { overallCode: OVER_LIMIT });
  clock.nowSeconds += 1;
  t.match(await ask(five), { overallCode: OK, statuses: [{ limitRemaining: 1, secondsUntilReset: 300 }] });
  await ask([descriptor({ one: 'x' }), descriptor({ bucket: 'x' })]);
  t.match(added.flat().slice(2), [
    { key: 'd_five_x_5m_1000200', unit: 'period', secondsLeft: 300, ttlSeconds: 300 },
    { key: 'd_one_x_1s_1000200', unit: 'second', secondsLeft: 1, ttlSeconds: 1 },
    { key: 'd_bucket_x_token_bucket', rate: { periodSeconds: 600 } },
  ]);
});

t.test('a day of a time zone ends at midnight there, also when clocks change', async (t) => {
  const nowSeconds = Date.parse('2026-10-25T22:59:59Z') / 1000;
  const { ask, added, clock } = makeDecider({ yaml: periods, nowSeconds, standardHeaders: true });
  const berlin = [descriptor({ berlin: 'x' })];
  const { statuses, responseHeaders } = await ask(berlin);
  t.match(statuses, [{ limitRemaining: 1, secondsUntilReset: 1, currentLimit: { unit: 'day' } }]);
  t.match(responseHeaders, [{ value: '"berlin";q=2;w=90000' }, {}]);
  clock.nowSeconds += 1;
  t.match(await ask(berlin), { statuses: [{ limitRemaining: 1, secondsUntilReset: 86_400 }] });
  t.match(added.flat(), [
    { key: 'd_berlin_x_day_Europe/Berlin_1792879200', unit: 'day', ttlSeconds: 90_000 },
    { key: 'd_berlin_x_day_Europe/Berlin_1792969200', ttlSeconds: 86_400 },
  ]);
});

t.test('USE_CALENDAR_MONTH_RATE_LIMIT: months of rules and requests, with the keys of a unit', async (t) => {
  const nowSeconds = Date.parse('2026-02-28T23:59:00Z') / 1000;
  const yaml = `domain: d
descriptors:
  - { key: month, rate_limit: { unit: month, requests_per_unit: 2 } }
  - { key: day, rate_limit: { unit: day, requests_per_unit: 2 } }
`;
  const calendarMonths = Windows.ofUtcMonths();
  const { ask, added, clock } = makeDecider({ yaml, nowSeconds, calendarMonths });
  const limit = { requestsPerUnit: 5, unit: 5 };
  const request = [descriptor({ month: 'x' }), descriptor({ own: 'x' }, { limit }), descriptor({ day: 'x' })];
  t.match(await ask(request), { statuses: [{ secondsUntilReset: 60 }, { secondsUntilReset: 60 }, {}] });
  clock.nowSeconds += 60;
  t.match(await ask(request), { statuses: [{ limitRemaining: 1, secondsUntilReset: 31 * 86_400 }, {}, {}] });
  const february = Date.UTC(2026, 1) / 1000;
  t.match(added.flat(), [
    { key: `d_month_x_${february}`, ttlSeconds: 28 * 86_400 },
    { key: `d_own_x_${february}` },
    { key: `d_day_x_${february + 27 * 86_400}` },
    { key: `d_month_x_${february + 28 * 86_400}` },
    {},
    {},
  ]);
});

t.test('CACHE_KEY_PREFIX is the prefix of the key', async (t) => {
  const { ask, added } = makeDecider({ yaml, cacheKeyPrefix: 'p:', nowSeconds: 1_000_000 });
  await ask([descriptor({ hour: 'x' })]);
  t.equal(added[0]?.[0]?.key, 'p:d_hour_x_997200');
});

t.test('the TTL of a counter is its unit plus random jitter', async (t) => {
  const { ask, added } = makeDecider({ yaml, expirationJitterMaxSeconds: 300, random: () => 0.999 });
  await ask([descriptor({ minute: 'x' })]);
  t.equal(added[0]?.[0]?.ttlSeconds, 359);
});

t.test('hits: the descriptor decides, then the request, and at least 1', async (t) => {
  const { ask } = makeDecider({ yaml });
  const remaining = async (more: Parameters<typeof descriptor>[1], hitsAddend: number) =>
    (await ask([descriptor({ hour: 'x' }, more)], { hitsAddend })).statuses[0]?.limitRemaining;
  t.equal(await remaining({}, 0), 9);
  t.equal(await remaining({}, 2), 7);
  t.equal(await remaining({ hitsAddend: 3n }, 2), 4);
  t.equal(await remaining({ hitsAddend: 0n }, 2), 4);
});

t.test('a refund is OK, gives hits back, and counts as negative hits only', async (t) => {
  const { ask, stats } = makeDecider({ yaml });
  const refund = (hitsAddend: bigint) =>
    ask([descriptor({ minute: 'x' }, { hitsAddend, isNegativeHits: true })]);
  await ask([descriptor({ minute: 'x' })], { hitsAddend: 9 });
  t.match(await refund(1n), { overallCode: OK, statuses: [{ code: OK, limitRemaining: 0 }] }, 'still above');
  t.match(await refund(7n), { overallCode: OK, statuses: [{ code: OK, limitRemaining: 1 }] });
  t.match(await refund(99n), { overallCode: OK, statuses: [{ code: OK, limitRemaining: 2 }] });
  const [rule] = [...stats.rules()].filter(({ totalNegativeHits }) => totalNegativeHits > 0);
  t.match(rule, { totalHits: 9, overLimit: 7, withinLimit: 0, totalNegativeHits: 107 });
});

t.test('reading a counter at its limit is OK, above it is over', async (t) => {
  const { ask } = makeDecider({ yaml });
  await ask([descriptor({ minute: 'x' })], { hitsAddend: 2 });
  t.match(await ask([descriptor({ minute: 'x' }, { hitsAddend: 0n })]), {
    statuses: [{ code: OK, limitRemaining: 0 }],
  });
  await ask([descriptor({ minute: 'x' })]);
  t.equal((await ask([descriptor({ minute: 'x' }, { hitsAddend: 0n })])).overallCode, OVER_LIMIT);
});

t.test('a huge number of hits is always over the limit, and never a failure', async (t) => {
  const { ask } = makeDecider({ yaml });
  for (const hitsAddend of [2n ** 63n - 1n, 2n ** 64n - 1n, 2n ** 64n - 1n]) {
    t.equal((await ask([descriptor({ hour: 'x' }, { hitsAddend })])).overallCode, OVER_LIMIT);
  }
});

t.test('a counter below zero leaves the full limit', async (t) => {
  const { ask, store } = makeDecider({ yaml });
  store.take = async (hits) => hits.map((hit) => toWindowResult(hit, -4));
  t.match(await ask([descriptor({ hour: 'x' })]), { statuses: [{ code: OK, limitRemaining: 10 }] });
});

t.test('replaces: the replaced rule is not counted and is OK without a limit', async (t) => {
  const { ask, rule } = makeDecider({ yaml });
  const decision = await ask([descriptor({ minute: 'a' }), descriptor({ strict: 'b' })]);
  t.same(decision.statuses[0], { code: OK, limitRemaining: 0, quota: false });
  t.match(decision.statuses[1], { limitRemaining: 0, currentLimit: { requestsPerUnit: 1 } });
  t.equal(rule('minute').totalHits, 0);
  t.equal(rule('strict').totalHits, 1);
});

t.test(
  'an override replaces the rule, or limits where there is none, and shares the counter of the entries',
  async (t) => {
    const { ask, added, rule } = makeDecider({ yaml });
    const limit = { requestsPerUnit: 1, unit: 2 };
    await ask([descriptor({ minute: 'a' })]);
    t.match(await ask([descriptor({ minute: 'a' }, { limit })]), {
      overallCode: OVER_LIMIT,
      statuses: [{ currentLimit: { requestsPerUnit: 1, unit: 'minute', name: '' } }],
    });
    t.match(await ask([descriptor({ unknown: 'a' }, { limit })]), {
      overallCode: OK,
      statuses: [{ limitRemaining: 0 }],
    });
    t.equal(added[1]?.[0]?.key, added[0]?.[0]?.key);
    t.match(rule('minute_a'), { totalHits: 1, overLimit: 1 });
  },
);

t.test('an override in weeks is supported, one without a unit is INVALID_ARGUMENT', async (t) => {
  const { ask, stats } = makeDecider({ yaml });
  const week = await ask([descriptor({ a: 'b' }, { limit: { requestsPerUnit: 1, unit: 7 } })]);
  t.equal(week.statuses[0]?.currentLimit?.unit, 'week');
  for (const unit of [0, 8, -1]) {
    await t.rejects(ask([descriptor({ a: 'b' }, { limit: { requestsPerUnit: 1, unit } })]), {
      code: 'invalid_override',
      grpcStatus: 3,
      message: /descriptors\[0\].limit.unit/,
    });
  }
  t.equal(stats.counter('ratelimit.service.call.should_rate_limit.service_error').value, 3);
});

t.test('shadow mode of a rule is OK and counts what it would have rejected', async (t) => {
  const { ask, rule } = makeDecider({ yaml });
  await ask([descriptor({ shadow: 'x' })]);
  t.match(await ask([descriptor({ shadow: 'x' })]), {
    overallCode: OK,
    statuses: [{ code: OK, limitRemaining: 0, currentLimit: { requestsPerUnit: 1 }, secondsUntilReset: 20 }],
  });
  t.match(rule('shadow'), { totalHits: 2, overLimit: 1, shadowMode: 1, withinLimit: 1 });
});

t.test('global shadow mode is OK overall, keeps the statuses and counts', async (t) => {
  const { ask, stats } = makeDecider({ yaml, shadowMode: true });
  t.match(await ask([descriptor({ blocked: 'x' })]), { overallCode: OK, statuses: [{ code: OVER_LIMIT }] });
  t.match(await ask([descriptor({ hour: 'x' })]), { overallCode: OK });
  t.equal(stats.counter('ratelimit.service.global_shadow_mode').value, 1);
});

t.test('quotas are over only when all are used up, other limits always', async (t) => {
  const { ask } = makeDecider({ yaml });
  const [first, second] = [descriptor({ quota: 'a' }), descriptor({ quota: 'b' })];
  await ask([first]);
  t.match(await ask([first, second]), { overallCode: OK, statuses: [{ code: OVER_LIMIT }, { code: OK }] });
  t.match(await ask([first, second]), { overallCode: OVER_LIMIT });
  t.match(await ask([descriptor({ quota: 'new' }), descriptor({ blocked: 'x' })]), {
    overallCode: OVER_LIMIT,
  });
});

t.test('global quota mode applies to all descriptors, including unmatched ones', async (t) => {
  const { ask } = makeDecider({ yaml, quotaMode: true });
  t.match(await ask([descriptor({ blocked: 'x' })]), { overallCode: OVER_LIMIT });
  t.match(await ask([descriptor({ blocked: 'x' }), descriptor({ nothing: 'x' })]), { overallCode: OK });
});

t.test('invalid requests are rejected with the messages of envoyproxy/ratelimit and counted', async (t) => {
  const { ask, stats } = makeDecider({ yaml });
  await t.rejects(ask([descriptor({ a: 'b' })], { domain: '' }), {
    message: 'rate limit domain must not be empty',
    grpcStatus: 2,
  });
  await t.rejects(ask([]), { message: 'rate limit descriptor list must not be empty', grpcStatus: 2 });
  await t.rejects(makeDecider({ yaml: null }).ask([descriptor({ a: 'b' })]), {
    message: 'no rate limit configuration loaded',
    grpcStatus: 2,
  });
  t.equal(stats.counter('ratelimit.service.call.should_rate_limit.service_error').value, 2);
});

t.test('a failing store fails the request and is counted, after total hits', async (t) => {
  const { ask, stats, rule, store } = makeDecider({ yaml });
  await take(store, [
    {
      key: 'd_hour_x_997200',
      addend: 2 ** 63 - 1024,
      capacity: 10,
      unit: 'hour',
      secondsLeft: 800,
      ttlSeconds: 3600,
    },
  ]);
  await t.rejects(ask([descriptor({ minute: 'x' }), descriptor({ hour: 'x' }, { hitsAddend: 2n ** 32n })]), {
    code: 'backend_failure',
  });
  t.equal(stats.counter('ratelimit.service.call.should_rate_limit.redis_error').value, 1);
  t.equal(rule('minute').totalHits, 1);
});

t.test('counters over their limit are served by the local cache without the store', async (t) => {
  const { ask, added, rule, clock } = makeDecider({
    yaml: 'domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: minute, requests_per_unit: 20 }\n',
    localCache: true,
  });
  const codes: number[] = [];
  for (let i = 0; i < 25; i += 1) {
    codes.push((await ask([descriptor({ k: 'v' })])).overallCode);
  }
  t.same(codes, [...new Array(20).fill(OK), ...new Array(5).fill(OVER_LIMIT)]);
  t.equal(added.length, 21);
  t.match(rule('k'), { totalHits: 25, overLimit: 5, overLimitWithLocalCache: 4 });
  clock.nowSeconds += 20;
  t.equal((await ask([descriptor({ k: 'v' })])).overallCode, OK, 'a new window is not remembered as over');
});

t.test(
  'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: when a limit is exceeded, other counters are not incremented',
  async (t) => {
    const { ask } = makeDecider({
      yaml: `
domain: d
descriptors:
  - { key: a, rate_limit: { unit: minute, requests_per_unit: 20 } }
  - { key: b, rate_limit: { unit: hour, requests_per_unit: 10 } }
`,
      stopIncrementWhenOverLimit: true,
    });
    const both = [descriptor({ a: 'x' }), descriptor({ b: 'x' })];
    for (let i = 0; i < 10; i += 1) {
      await ask(both);
    }
    for (let i = 0; i < 3; i += 1) {
      t.match(await ask(both), {
        overallCode: OVER_LIMIT,
        statuses: [
          { code: OK, limitRemaining: 10 },
          { code: OVER_LIMIT, limitRemaining: 0 },
        ],
      });
    }
  },
);

t.test('STOP_…: with a counter in the local cache, the others are not read', async (t) => {
  const { ask, added } = makeDecider({ yaml, stopIncrementWhenOverLimit: true, localCache: true });
  await ask([descriptor({ blocked: 'x' })]);
  await ask([descriptor({ blocked: 'x' }), descriptor({ hour: 'x' })]);
  t.same(
    added[1]?.map(({ key, addend }) => [key, addend]),
    [['d_hour_x_997200', 0]],
  );
});

t.test('headers are of the tightest limit, or of the last one that is over', async (t) => {
  const { ask } = makeDecider({
    yaml,
    nowSeconds: 1_000_000,
    headerNames: { limit: 'RateLimit-Limit', remaining: 'RateLimit-Remaining', reset: 'RateLimit-Reset' },
  });
  const headers = async (...keys: string[]) =>
    (await ask(keys.map((key) => descriptor({ [key]: 'x' })))).responseHeaders.map(({ value }) => value);
  t.same(await headers('hour', 'minute'), ['2', '1', '20']);
  t.same(await headers('blocked', 'minute'), ['0', '0', '36800'], 'over beats equal remaining');
  t.same(await headers('minute', 'blocked'), ['0', '0', '36800'], 'the last one over');
  t.same(await headers('blocked', 'minute'), ['2', '0', '20']);
  t.same(await headers('nothing', 'free'), [], 'nothing was counted');
  t.same((await ask([descriptor({ hour: 'y' })])).responseHeaders, [
    { key: 'RateLimit-Limit', value: '10' },
    { key: 'RateLimit-Remaining', value: '9' },
    { key: 'RateLimit-Reset', value: '800' },
  ]);
});

t.test('dynamic metadata has the request and the metadata of rules within their limits', async (t) => {
  const { ask } = makeDecider({
    yaml: `
domain: d
descriptors:
  - key: a
    metadata: { team: red, nested: { x: 1 } }
    detailed_metric: true
    rate_limit: { unit: day, requests_per_unit: 5 }
  - key: b
    metadata: { team: blue, nested: { y: 2, __proto__: 3 } }
    rate_limit: { unlimited: true }
  - key: c
    metadata: { over: true }
    rate_limit: { unit: day, requests_per_unit: 0 }
`,
    responseDynamicMetadata: true,
  });
  const decision = await ask(
    [
      descriptor({ a: '1' }),
      descriptor({ b: '2' }),
      descriptor({ c: '3' }, { hitsAddend: 4n }),
      descriptor({ e: '' }, { limit: { requestsPerUnit: 9, unit: 2 } }),
    ],
    { hitsAddend: 1 },
  );
  const metadata = JSON.parse(JSON.stringify(decision.dynamicMetadata));
  t.same(metadata, {
    domain: 'd',
    descriptors: [
      { entries: ['a=1'] },
      { entries: ['b=2'] },
      { entries: ['c=3'], hitsAddend: 4 },
      { entries: ['e='], limit: 'requests_per_unit:9 unit:MINUTE' },
    ],
    hitsAddend: 1,
    metadata: { team: 'red', nested: { x: 1, y: 2, ['__proto__']: 3 } },
  });
});

t.test('decisions are counted by result, near the limit among them', async (t) => {
  const { ask, stats } = makeDecider({ yaml });
  const counted = () =>
    Object.fromEntries(
      [...stats.counters()]
        .filter(({ name }) => name === 'ratelimit.decisions')
        .map(({ tags, value }) => [tags?.result, value]),
    );
  t.strictSame(counted(), { ok: 0, near_limit: 0, over_limit: 0 });
  // Two a minute, of which the second is above 80 %.
  for (const _ of [1, 2, 3]) await ask([descriptor({ minute: 'x' })]);
  t.strictSame(counted(), { ok: 1, near_limit: 1, over_limit: 1 });
  await ask([descriptor({ free: 'x' })]);
  await ask([descriptor({ minute: 'x' })], { domain: 'unknown' });
  t.strictSame(counted(), { ok: 3, near_limit: 1, over_limit: 1 });
});

const named = `
domain: d
descriptors:
  - key: plan
    value: 'free "x"'
    rate_limit: { unit: minute, requests_per_unit: 2, name: 'free "ä"' }
  - key: path
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 10 }
  - key: open
    rate_limit: { unlimited: true }
`;

t.test('LIMIT_STANDARD_HEADERS_ENABLED: all limits, and when to retry a refused request', async (t) => {
  const { ask } = makeDecider({ yaml: named, standardHeaders: true });
  const request = [
    descriptor({ plan: 'free "x"' }),
    descriptor({ path: '/a', user: '1' }),
    descriptor({ open: 'x' }),
    descriptor({ unknown: 'x' }),
  ];
  const policy = { key: 'RateLimit-Policy', value: '"free \\"_\\"";q=2;w=60, "path.user";q=10;w=3600' };
  t.same((await ask(request)).responseHeaders, [
    policy,
    { key: 'RateLimit', value: '"free \\"_\\"";r=1;t=20, "path.user";r=9;t=800' },
  ]);
  await ask(request);
  t.same((await ask(request)).responseHeaders, [
    policy,
    { key: 'RateLimit', value: '"free \\"_\\"";r=0;t=20, "path.user";r=7;t=800' },
    { key: 'Retry-After', value: '20' },
  ]);
  t.same((await ask([descriptor({ open: 'x' })])).responseHeaders, [], 'without a limit there are none');
});

t.test('standard headers: of two limits with one name the tighter one, and at most 16', async (t) => {
  const { ask } = makeDecider({ yaml: named, standardHeaders: true });
  await ask([descriptor({ path: '/b', user: '1' })]);
  const { responseHeaders } = await ask(['/a', '/b'].map((path) => descriptor({ path, user: '1' })));
  t.equal(responseHeaders[1]?.value, '"path.user";r=8;t=800');
  const many = Array.from({ length: 40 }, (_, i) => ({
    ...descriptor({ [`k${i}`]: 'v' }),
    limit: { requestsPerUnit: 5, unit: 2 },
  }));
  t.equal((await ask(many)).responseHeaders[0]?.value.split(', ').length, 16);
});

const announced = `
domain: d
descriptors:
  - key: generic_key
    value: slow
    rate_limit: { unit: minute, requests_per_unit: 10 }
  - key: generic_key
    value: 'daily "ä"'
    rate_limit: { unit: day, requests_per_unit: 1000 }
  - key: path
    value: /files/*
    descriptors:
      - key: user
        detailed_metric: true
        rate_limit: { unit: hour, requests_per_unit: 10 }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: plan
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: extra
    quota_mode: true
    rate_limit: { unit: day, requests_per_unit: 1 }
  - key: shadow_quota
    quota_mode: true
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: hour
    rate_limit: { unit: hour, requests_per_unit: 0 }
`;

t.test('standard headers: limits without a name have that of their levels as configured', async (t) => {
  const { ask } = makeDecider({ yaml: announced, standardHeaders: true });
  const { responseHeaders } = await ask([
    descriptor({ generic_key: 'slow' }),
    descriptor({ generic_key: 'daily "ä"' }),
    descriptor({ path: '/files/a', user: 'private' }),
    { ...descriptor({ tenant: 'private' }), limit: { requestsPerUnit: 5, unit: 2 } },
  ]);
  t.same(
    responseHeaders.map(({ value }) => value),
    [
      '"generic_key_slow";q=10;w=60, "generic_key_daily \\"_\\"";q=1000;w=86400, "path_/files/*.user";q=10;w=3600, "tenant";q=5;w=60',
      '"generic_key_slow";r=9;t=20, "generic_key_daily \\"_\\"";r=999;t=36800, "path_/files/*.user";r=9;t=800, "tenant";r=4;t=20',
    ],
  );
});

t.test('standard headers: limits in shadow mode are not announced', async (t) => {
  const { ask } = makeDecider({ yaml: announced, standardHeaders: true });
  const values = async (...keys: readonly string[]) =>
    (await ask(keys.map((key) => descriptor({ [key]: 'x' })))).responseHeaders.map(({ value }) => value);
  t.same(await values('shadow', 'plan'), ['"plan";q=1;w=60', '"plan";r=0;t=20']);
  t.same(await values('shadow'), []);
  const shadow = makeDecider({ yaml: announced, standardHeaders: true, shadowMode: true });
  const refused = await shadow.ask([descriptor({ hour: 'x' })]);
  t.same([refused.overallCode, refused.responseHeaders], [OK, []], 'SHADOW_MODE: all of them');
});

t.test('Retry-After: when all limits that refuse allow, and one of the quotas', async (t) => {
  const retryAfter = async (keys: readonly string[], quotaMode = false) => {
    const { ask } = makeDecider({ yaml: announced, standardHeaders: true, quotaMode });
    const request = keys.map((key) => descriptor({ [key]: 'x' }));
    await ask(request);
    return (await ask(request)).responseHeaders.find(({ key }) => key === 'Retry-After')?.value;
  };
  t.equal(await retryAfter(['plan', 'extra']), '20', 'of two quotas the first that is left again');
  t.equal(await retryAfter(['plan', 'extra', 'hour']), '800', 'the limit is longer than a quota');
  t.equal(await retryAfter(['extra', 'hour']), '36800', 'the quota is longer than the limit');
  t.equal(await retryAfter(['extra', 'shadow_quota', 'hour']), '800', 'a quota in shadow mode is left');
  t.equal(await retryAfter(['extra', 'shadow_quota']), undefined);
  t.equal(await retryAfter(['hour', 'extra'], true), '800', 'with QUOTA_MODE all are quotas');
  t.equal(await retryAfter(['hour', 'unmatched'], true), undefined);
});

const rates = `
domain: d
descriptors:
  - key: bucket
    rate_limit: { unit: minute, requests_per_unit: 60, algorithm: token_bucket, burst: 3 }
  - key: sliding
    rate_limit: { unit: minute, requests_per_unit: 10, algorithm: sliding_window }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 60, algorithm: token_bucket, burst: 1 }
  - key: slots
    rate_limit: { period: 64s, requests_per_unit: 8, algorithm: concurrency }
  - key: fixed
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: slow
    rate_limit: { unit: year, requests_per_unit: 1, algorithm: token_bucket, burst: 1000 }
`;

t.test('a token bucket: burst, then a request per refill, and when to retry', async (t) => {
  const { ask, clock, rule } = makeDecider({ yaml: rates, standardHeaders: true });
  const request = [descriptor({ bucket: 'x' })];
  t.match(await ask(request), {
    overallCode: OK,
    statuses: [{ code: OK, limitRemaining: 2, secondsUntilReset: 1, currentLimit: { requestsPerUnit: 60 } }],
  });
  await ask(request, { hitsAddend: 2 });
  t.match(await ask(request, { hitsAddend: 2 }), {
    overallCode: OVER_LIMIT,
    statuses: [{ code: OVER_LIMIT, limitRemaining: 0, secondsUntilReset: 2 }],
    responseHeaders: [{}, {}, { key: 'Retry-After', value: '2' }],
  });
  clock.nowSeconds += 2;
  t.match(await ask(request, { hitsAddend: 2 }), { overallCode: OK });
  t.match(rule('bucket'), { totalHits: 7, withinLimit: 5, nearLimit: 2, overLimit: 2, shadowMode: 0 });
});

t.test('a reset after more than 2^32 s is that long', async (t) => {
  const { ask } = makeDecider({ yaml: rates });
  const request = [descriptor({ slow: 'x' })];
  for (const expected of [OK, OVER_LIMIT]) {
    const decision = await ask(request, { hitsAddend: 1000 });
    t.match(decision, { overallCode: expected, statuses: [{ secondsUntilReset: 0xffff_ffff }] });
    const { statuses } = fromBinary(RateLimitResponseSchema, encodeDecision(decision));
    t.equal(statuses[0]?.durationUntilReset?.seconds, BigInt(0xffff_ffff));
  }
});

t.test('a sliding window does not let through twice the limit around the end of a window', async (t) => {
  const { ask, clock } = makeDecider({ yaml: rates, nowSeconds: 1_000_019 });
  const request = [descriptor({ sliding: 'x' })];
  t.match(await ask(request, { hitsAddend: 10 }), { overallCode: OK, statuses: [{ limitRemaining: 0 }] });
  clock.nowSeconds += 1;
  t.match(await ask(request), { overallCode: OVER_LIMIT, statuses: [{ secondsUntilReset: 6 }] });
  clock.nowSeconds += 30;
  t.match(await ask(request), { overallCode: OK, statuses: [{ limitRemaining: 4 }] });
});

t.test('a concurrency limit: refused requests take nothing, refunds and time release slots', async (t) => {
  const { ask, added, clock, rule } = makeDecider({ yaml: rates, standardHeaders: true });
  const request = [descriptor({ slots: 'x' })];
  t.match(await ask(request, { hitsAddend: 7 }), {
    overallCode: OK,
    statuses: [
      { limitRemaining: 1, secondsUntilReset: 64, currentLimit: { requestsPerUnit: 8, unit: undefined } },
    ],
    responseHeaders: [{ value: '"slots";q=8;qu="concurrent-requests"' }, { value: '"slots";r=1;t=64' }],
  });
  clock.nowSeconds += 10;
  t.match(await ask(request, { hitsAddend: 2 }), {
    overallCode: OVER_LIMIT,
    statuses: [{ code: OVER_LIMIT, limitRemaining: 0, secondsUntilReset: 54 }],
    responseHeaders: [{}, {}, { key: 'Retry-After', value: '54' }],
  });
  t.match(await ask(request), { overallCode: OK, statuses: [{ limitRemaining: 0 }] });
  await ask([descriptor({ slots: 'x' }, { isNegativeHits: true })]);
  t.match(await ask(request), { overallCode: OK });
  clock.nowSeconds += 54;
  t.match(await ask(request), { overallCode: OK, statuses: [{ limitRemaining: 5 }] });
  t.equal(added[0]?.[0]?.key, 'd_slots_x_concurrency');
  t.match(rule('slots'), { totalHits: 12, overLimit: 2, withinLimit: 10 });
});

t.test('metadata of a concurrency limit are for requests that took a slot', async (t) => {
  const limit = '{ unit: hour, requests_per_unit: 1';
  const yaml = `domain: d
descriptors:
  - { key: slots, rate_limit: ${limit}, algorithm: concurrency }, metadata: { slot: a } }
  - { key: shadow, shadow_mode: true, rate_limit: ${limit}, algorithm: concurrency }, metadata: { slot: b } }
  - { key: fixed, rate_limit: ${limit} }, metadata: { window: c } }
`;
  for (const options of [
    { yaml },
    { yaml, stopIncrementWhenOverLimit: true },
    { yaml: `atomic: true\n${yaml}` },
  ]) {
    const { ask } = makeDecider({ ...options, responseDynamicMetadata: true });
    const metadata = async (...keys: string[]) =>
      (await ask(keys.map((key) => descriptor({ [key]: 'x' })))).dynamicMetadata?.metadata;
    t.same(await metadata('shadow'), { slot: 'b' });
    t.same(await metadata('shadow'), undefined, 'in shadow mode without a slot');
    t.same(await metadata('fixed'), { window: 'c' });
    const took = options.yaml === yaml && !('stopIncrementWhenOverLimit' in options);
    t.same(await metadata('slots', 'fixed'), took ? { slot: 'a' } : undefined, 'another limit refused');
    t.same(await metadata('slots'), took ? undefined : { slot: 'a' });
    await ask([descriptor({ slots: 'x' }, { isNegativeHits: true })]);
    t.same(await metadata('slots'), { slot: 'a' });
  }
});

t.test('shadow mode, refunds and reads work for every algorithm', async (t) => {
  const { ask, rule } = makeDecider({ yaml: rates });
  const shadow = [descriptor({ shadow: 'x' })];
  await ask(shadow);
  t.match(await ask(shadow), { overallCode: OK, statuses: [{ code: OK, limitRemaining: 0 }] });
  t.match(rule('shadow'), { overLimit: 1, shadowMode: 1 });
  for (const key of ['bucket', 'sliding', 'slots']) {
    const read = () => ask([descriptor({ [key]: 'y' }, { hitsAddend: 0n })]);
    const before = (await read()).statuses[0]?.limitRemaining ?? 0;
    await ask([descriptor({ [key]: 'y' })], { hitsAddend: 3 });
    t.equal((await read()).statuses[0]?.limitRemaining, before - 3);
    await ask([descriptor({ [key]: 'y' }, { isNegativeHits: true })], { hitsAddend: 2 });
    t.equal((await read()).statuses[0]?.limitRemaining, before - 1);
  }
});

t.test('a window that is exceeded withholds hits from buckets, too', async (t) => {
  const { ask } = makeDecider({ yaml: rates, stopIncrementWhenOverLimit: true });
  const request = [descriptor({ fixed: 'x' }), descriptor({ bucket: 'z' })];
  await ask(request);
  t.match(await ask(request), { overallCode: OVER_LIMIT, statuses: [{}, { code: OK, limitRemaining: 2 }] });
});
