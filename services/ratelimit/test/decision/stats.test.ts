import { loadRuleFiles } from '@tollgate/rules/load-rule-files';
import t from 'tap';
import { findLimits } from '../../src/decision/find-limit.ts';
import { DecisionStats, nearThreshold, recordResult } from '../../src/decision/stats.ts';
import { StatsRegistry } from '../../src/metrics/registry.ts';
import { limitOfAMinute, ruleOfAMinute } from '../support/limit-of-a-minute.ts';

t.test('an unchanged rule keeps its series across a reload', async (t) => {
  const text = 'domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: hour, requests_per_unit: 1 }\n';
  const loaded = loadRuleFiles([{ source: 'd.yaml', text }], { mergeDomains: false });
  const root = loaded.ok ? loaded.rules.domains.get('d') : undefined;
  const [limit] =
    root === undefined ? [] : findLimits(root, [{ entries: [{ key: 'k', value: '' }], limit: undefined }]);
  if (limit?.kind !== 'limited') throw new Error('the rules of the test limit k');

  // Without a reserve for old series, they are dropped as soon as they are idle.
  const registry = new StatsRegistry({ maxDynamicRules: 0, idleMs: 0 });
  const stats = new DecisionStats(registry);
  const counters = stats.getRule('d', limit);
  registry.releaseRules();
  t.equal(stats.getRule('d', limit), counters, 'the same counters');
  counters.totalHits += 1;
  registry.takeSnapshot(1);
  registry.dropIdleSeries(2);
  t.same(
    [...registry.rules()].map(({ key, totalHits }) => [key, totalHits]),
    [['d.k', 1]],
  );
});

const noStats = { overLimit: 0, nearLimit: 0, withinLimit: 0, overLimitWithLocalCache: 0, shadowMode: 0 };

function countOnce({
  limit,
  addend,
  after: count,
  shadow = false,
  over = count > limit,
  fromLocalCache = false,
  ratio = 0.8,
}: {
  limit: number;
  addend: number;
  after: number;
  shadow?: boolean;
  over?: boolean;
  fromLocalCache?: boolean;
  ratio?: number;
}) {
  const stats = new StatsRegistry().rule('domain', ['key']);
  const hit = {
    key: 'key',
    addend,
    capacity: limit,
    unit: 'minute',
    secondsLeft: 60,
    ttlSeconds: 60,
  } as const;
  const result = { used: count, allowed: !over, remaining: 0, resetSeconds: 60, fromLocalCache };
  const rule = { ...ruleOfAMinute(limit), shadowMode: shadow };
  const check = { limit: { ...limitOfAMinute(limit), rule }, hit, stats, result };
  recordResult(check, { nearLimitRatio: ratio });
  const { overLimit, nearLimit, withinLimit, overLimitWithLocalCache, shadowMode } = stats;
  return { overLimit, nearLimit, withinLimit, overLimitWithLocalCache, shadowMode };
}

const vectors = [
  { limit: 15, addend: 1, after: 11, over: 0, near: 0, within: 1 },
  { limit: 15, addend: 1, after: 13, over: 0, near: 1, within: 1 },
  { limit: 15, addend: 1, after: 16, over: 1, near: 0, within: 0 },
  { limit: 20, addend: 3, after: 5, over: 0, near: 0, within: 3 },
  { limit: 8, addend: 2, after: 7, over: 0, near: 1, within: 2 },
  { limit: 20, addend: 3, after: 19, over: 0, near: 3, within: 3 },
  { limit: 20, addend: 3, after: 22, over: 2, near: 1, within: 0 },
  { limit: 20, addend: 7, after: 22, over: 2, near: 4, within: 0 },
  { limit: 10, addend: 3, after: 30, over: 3, near: 0, within: 0 },
];

for (const { limit, addend, after, over, near, within } of vectors) {
  t.test(`${addend} hits that bring ${limit} per unit to ${after} are split at the thresholds`, async (t) => {
    t.strictSame(countOnce({ limit, addend, after }), {
      ...noStats,
      overLimit: over,
      nearLimit: near,
      withinLimit: within,
    });
  });
}

t.test('the hit that reaches the limit is near, not over', async (t) => {
  t.strictSame(countOnce({ limit: 10, addend: 1, after: 10 }), { ...noStats, nearLimit: 1, withinLimit: 1 });
});

t.test('shadow mode counts the hits that it would have rejected', async (t) => {
  t.strictSame(countOnce({ limit: 20, addend: 7, after: 22, shadow: true }), {
    ...noStats,
    overLimit: 2,
    nearLimit: 4,
    shadowMode: 2,
  });
  t.strictSame(countOnce({ limit: 10, addend: 3, after: 30, shadow: true }), {
    ...noStats,
    overLimit: 3,
    shadowMode: 3,
  });
});

t.test('shadow mode within the limit counts nothing as shadow', async (t) => {
  t.strictSame(countOnce({ limit: 10, addend: 1, after: 1, shadow: true }), { ...noStats, withinLimit: 1 });
});

t.test('a result from the local cache counts all hits as over, and separately', async (t) => {
  const fromCache = { limit: 20, addend: 2, after: 0, over: true, fromLocalCache: true };
  t.strictSame(countOnce(fromCache), { ...noStats, overLimit: 2, overLimitWithLocalCache: 2 });
  t.strictSame(countOnce({ ...fromCache, shadow: true }), {
    ...noStats,
    overLimit: 2,
    overLimitWithLocalCache: 2,
    shadowMode: 2,
  });
});

t.test('the first request of a window is split at the thresholds', async (t) => {
  t.strictSame(countOnce({ limit: 10, addend: 9, after: 9 }), { ...noStats, nearLimit: 1, withinLimit: 9 });
  t.strictSame(countOnce({ limit: 10, addend: 12, after: 12 }), { ...noStats, nearLimit: 2, overLimit: 2 });
});

t.test('hits that were not stored count as over a huge previous count', async (t) => {
  t.strictSame(countOnce({ limit: 20, addend: 18, after: 17 }), {
    ...noStats,
    nearLimit: 18,
    withinLimit: 18,
  });
  t.strictSame(countOnce({ limit: 2, addend: 5, after: 3 }), { ...noStats, overLimit: 5 });
});

t.test('0 hits count nothing', async (t) => {
  t.strictSame(countOnce({ limit: 10, addend: 0, after: 9 }), noStats);
  t.strictSame(countOnce({ limit: 10, addend: 0, after: 11 }), noStats);
});

t.test('a near threshold that is rounded above the limit counts no hits as near', async (t) => {
  const rounded = { limit: 4_294_967_295, ratio: 1 };
  t.strictSame(countOnce({ ...rounded, addend: 2, after: 4_294_967_296 }), { ...noStats, overLimit: 1 });
});

t.test('the near threshold is computed in 32-bit floating point', async (t) => {
  t.equal(nearThreshold(15, 0.8), 12);
  t.equal(nearThreshold(8, 0.8), 6);
  t.equal(nearThreshold(10, 0.7), 7, 'where 64 bits would give 7 too');
  t.equal(nearThreshold(100, 0.29), 29, 'where 64 bits would give 28');
  t.equal(nearThreshold(4_294_967_295, 1), 4_294_967_296, 'because the limit itself is rounded');
});
