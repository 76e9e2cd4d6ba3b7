import { awaitUntil } from '@tollgate/testkit/await-until';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { runCounters } from '../../src/cli/counters.ts';
import { Activity } from '../../src/decision/activity.ts';
import { Code } from '../../src/decision/wire/response.ts';
import { adminToken, nowMs, startCounterApi } from '../support/counter-api.ts';
import { limitOfAMinute } from '../support/limit-of-a-minute.ts';

/** Hits on the counter of one value, and whether they were refused. */
function record(activity: Activity, value: string, addend = 1, over = false): void {
  const limit = { ...limitOfAMinute(5), keyEntries: [{ key: 'k', value }], metricPath: ['k'] };
  const hit = { key: value, addend, capacity: 5, unit: 'minute' as const, secondsLeft: 20, ttlSeconds: 60 };
  const result = { allowed: !over, used: 1, remaining: 0, resetSeconds: 20 };
  activity.record('d', [{ limit, hit, result }], over ? Code.OVER_LIMIT : Code.OK);
}

const firstValue = ({ entries }: { readonly entries: readonly { readonly value: string }[] }) =>
  entries[0]?.value;

interface HourOfKeys {
  readonly keys: readonly { readonly hits: readonly number[]; readonly refused: readonly number[] }[];
}

const sumOf = (numbers: readonly number[] = []) => numbers.reduce((sum, number) => sum + number, 0);

t.test('heavy keys stay among any number of light ones, with a known error', async (t) => {
  const activity = new Activity(() => 0);
  const light = 50_000;
  for (let i = 0; i < light; i += 1) {
    record(activity, `light ${i}`);
    if (i % 100 === 0) record(activity, 'heavy', 3);
    if (i % 50 === 0) record(activity, 'second');
  }
  record(activity, 'refund', -1000);
  const { keys, maxMissedHits } = activity.report();
  t.strictSame(keys.slice(0, 2).map(firstValue), ['heavy', 'second']);
  const total = light + 1500 + 1000;
  t.ok(maxMissedHits > 0 && maxMissedHits <= (2 * total) / 2048, `${maxMissedHits} of ${total} missed`);
  const [heavy] = keys;
  t.ok(heavy && heavy.hits <= 1500 && heavy.hits + maxMissedHits >= 1500);
  t.ok(keys.length <= 2048);
});

t.test('a key has all its hits since it is counted, and says how many may be missing', async (t) => {
  let nowMs = 0;
  const activity = new Activity(() => nowMs);
  const flood = (name: string) => {
    for (let i = 0; i < 50_000; i += 1) record(activity, `${name} ${i}`);
  };
  record(activity, 'early', 100);
  record(activity, 'early', 100, true);
  flood('light');
  record(activity, 'late', 90, true);
  flood('other');
  const find = (value: string) => activity.reportHour().keys.find((key) => firstValue(key) === value);
  t.match(find('early'), { hits: [200], refused: [100], peakSecond: [200], missed: [0] });
  const late = find('late');
  t.match(late, { hits: [90], refused: [90], peakSecond: [90] });
  t.ok((late?.missed[0] ?? 0) > 0, 'it may have had hits before');
  nowMs = 60_000;
  record(activity, 'next', 300);
  t.match(find('next')?.hits, [0, 300]);
  t.ok((find('next')?.missed[0] ?? 0) > 0, 'it may have had hits in the minute before');
  t.equal(find('next')?.missed[1], 0);
});

t.test('top keys are those of the last two minutes at most', async (t) => {
  let nowMs = 0;
  const activity = new Activity(() => nowMs);
  record(activity, 'a', 2);
  nowMs = 61_000;
  record(activity, 'a', 3);
  record(activity, 'b', 4);
  t.match(activity.report(), { seconds: 61, maxMissedHits: 0, keys: [{ hits: 5 }, { hits: 4 }] });
  nowMs = 122_000;
  t.match(activity.report(), { seconds: 61, keys: [{ hits: 4 }, { hits: 3 }] });
  nowMs = 1_000_000;
  t.strictSame(activity.report().keys, []);
});

t.test('the keys of the last hour have their hits by minute', async (t) => {
  let nowMs = 30_000;
  const activity = new Activity(() => nowMs);
  record(activity, 'a', 2);
  record(activity, 'a', 3, true);
  nowMs = 31_000;
  record(activity, 'a', 4);
  t.match(activity.reportHour(), {
    ...{ sinceMs: 0, isComplete: true },
    keys: [{ domain: 'd', entries: [{ key: 'k', value: 'a' }], hits: [9], refused: [3], peakSecond: [5] }],
  });
  nowMs = 125_000;
  record(activity, 'b', 10);
  t.match(activity.reportHour().keys, [
    { entries: [{ value: 'b' }], hits: [0, 0, 10], peakSecond: [0, 0, 10] },
    { entries: [{ value: 'a' }], hits: [9, 0, 0], refused: [3, 0, 0] },
  ]);
  t.strictSame(activity.reportHour({ domain: 'd', limit: 1 }).keys.map(firstValue), ['b']);
  t.strictSame(activity.reportHour({ domain: 'other' }).keys, []);
  nowMs = 60 * 60_000 + 1_000;
  const later = activity.reportHour();
  t.equal(later.sinceMs, 60_000);
  t.match(later.keys, [{ entries: [{ value: 'b' }] }], 'the first minute is over an hour old');
  t.equal(later.keys[0]?.hits.length, 60);
});

t.test('a bounded number of keys is remembered, and a report says so', async (t) => {
  let nowMs = 0;
  const activity = new Activity(() => nowMs);
  for (let i = 0; i < 1_500; i += 1) record(activity, `${i}`, i === 1_499 ? 5 : 1);
  t.equal(activity.reportHour().isComplete, true);
  nowMs = 60_000;
  record(activity, 'later', 2);
  const { keys, isComplete } = activity.reportHour();
  t.equal(isComplete, false);
  t.equal(keys.length, 1_001);
  t.strictSame(keys.slice(0, 2).map(firstValue), ['1499', 'later'], 'the heaviest stay');
  nowMs = 61 * 60_000;
  t.match(activity.reportHour(), { isComplete: true, keys: [] }, 'an hour later, nothing is missing');
});

t.test('the last thousand refusals are kept, and long texts are cut', async (t) => {
  const clock = fakeClock();
  const activity = new Activity(clock.now);
  record(activity, 'allowed');
  for (let i = 0; i < 1_002; i += 1) record(activity, i === 1_001 ? 'x'.repeat(1_000_000) : `${i}`, 1, true);
  const { refusals } = activity.report();
  t.equal(refusals.length, 1_000);
  t.match(refusals[0], {
    domain: 'd',
    entries: [{ key: 'k', value: `${'x'.repeat(100)}…` }],
    rule: 'k',
    requestsPerUnit: 5,
    unit: 'minute',
    hits: 1,
    code: 'OVER_LIMIT',
  });
  t.strictSame(
    [refusals[1], refusals.at(-1)].map((refusal) => refusal && firstValue(refusal)),
    ['1000', '2'],
  );
});

t.test('the counter API and the command list top keys and refusals', async (t) => {
  const limits = (domain: string) => `
domain: ${domain}
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 0 }
`;
  const { base, call, decide } = await startCounterApi(t, {
    rules: { 'shop.yaml': limits('shop'), 'bank.yaml': limits('bank'), 'evil.yaml': limits('evil') },
    candidates: { 'shop.yaml': limits('shop').replace('per_unit: 1', 'per_unit: 3') },
  });
  for (const user of ['ann', 'bob', 'ann', 'ann']) await decide('shop', `user=${user}`);
  await decide('shop', 'shadow=1');
  await decide('bank', 'user=eve');
  t.match(await call('/v1/top?domain=shop&limit=2'), {
    status: 200,
    json: {
      maxMissedHits: 0,
      keys: [
        { domain: 'shop', entries: [{ key: 'user', value: 'ann' }], hits: 3 },
        { domain: 'shop', hits: 1 },
      ],
    },
  });
  const hour = (await call('/v1/keys?domain=shop&limit=1')).json as unknown as HourOfKeys;
  t.match(hour, {
    complete: true,
    keys: [
      {
        ...{ domain: 'shop', entries: [{ key: 'user', value: 'ann' }], fromRequest: false },
        ...{ rule: 'user', algorithm: 'fixed_window', requestsPerUnit: 1, unit: 'hour' },
      },
    ],
  });
  // A minute may end meanwhile.
  t.same([sumOf(hour.keys[0]?.hits), sumOf(hour.keys[0]?.refused)], [3, 2]);
  const { json } = await call('/v1/refusals');
  const refusals = json.refusals as { time: string; code: string }[];
  t.strictSame(
    refusals.map(({ code }) => code),
    ['OK', 'OVER_LIMIT', 'OVER_LIMIT'],
  );
  t.ok(Math.abs(Date.parse(refusals[0]?.time ?? '') - nowMs()) < 60_000);
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'user=a']) {
    t.match(await call(`/v1/top?${query}`), { status: 400, json: { code: 'malformed_request' } });
  }
  t.match((await call('/v1/domains?limit=2')).json, {
    domains: [
      { domain: 'bank', limits: 2, hits: 1, overLimit: 0 },
      { domain: 'evil', limits: 2, hits: 0 },
    ],
    next: 'evil',
  });
  t.match((await call('/v1/domains?after=evil')).json, {
    domains: [{ domain: 'shop', limits: 2, hits: 5, overLimit: 3 }],
    next: undefined,
  });
  t.match((await call('/v1/limits?domain=shop')).json, {
    limits: [
      { domain: 'shop', path: 'shop.shadow', requestsPerUnit: 0, shadowMode: true, counts: { hits: 1 } },
      {
        ...{ path: 'shop.user', rule: 'user', algorithm: 'fixed_window', requestsPerUnit: 1, unit: 'hour' },
        counts: { hits: 4, overLimit: 2 },
      },
    ],
  });
  t.match((await call('/v1/limits?search=k.us')).json, { limits: [{ path: 'bank.user' }] });
  await awaitUntil(
    async () => {
      const { json } = await call('/v1/trial?domain=shop');
      return (json.domains as { requests: number }[])[0]?.requests === 5;
    },
    { what: 'the comparison of 5 requests' },
  );
  t.match((await call('/v1/trial?domain=shop&limit=1')).json, {
    trial: { domains: 1, rules: 2 },
    rules: [{ domain: 'shop', rule: 'shop.user', limit: '3 per hour', refused: 2, newlyAllowed: 2 }],
  });
  const run = async (...args: string[]) => {
    const env = { ADMIN_TOKEN: adminToken };
    return (await runCounters([...args, '-address', base], env)).output;
  };
  t.match(
    await run('top', '-domain', 'shop', '-limit', '1'),
    /^HITS +DOMAIN +DESCRIPTOR\n3 +shop +user=ann\nin the last \d+ s\n$/,
  );
  t.match(
    await run('refusals', '-limit', '2'),
    /^TIME .*CODE\n\S+ +shop +shadow=1 +shadow +0 per hour +1 +OK\n\S+ +shop +user=ann +user +1 per hour +1 +OVER_LIMIT\n$/,
  );
  await decide('evil', 'user=\u001b[2J\u009b\u202e\nx');
  t.match(
    await run('top', '-domain', 'evil'),
    /\n1 +evil +user=\\u\{1b\}\[2J\\u\{9b\}\\u\{202e\}\\u\{a\}x\n/,
    'control characters are escaped',
  );
});
