import t from 'tap';
import { findLimits } from '../../src/decision/find-limit.ts';
import type { Descriptor } from '../../src/decision/wire/request.ts';
import { joinStatKey } from '../../src/metrics/names.ts';
import { descriptor, rulesOf } from '../support/make-decider.ts';

const domain = rulesOf(`
domain: d
descriptors:
  - key: plain
    rate_limit: { name: plain, unit: hour, requests_per_unit: 5 }
  - key: free
    quota_mode: true
    rate_limit: { unlimited: true, replaces: [{ name: plain }] }
  - key: both
    rate_limit: { name: both, unit: hour, requests_per_unit: 5, replaces: [{ name: plain }] }
  - key: last
    rate_limit: { unit: hour, requests_per_unit: 5, replaces: [{ name: both }, { name: spare }] }
  - key: spare
    rate_limit: { name: spare, unlimited: true }
  - key: shadow
    shadow_mode: true
    quota_mode: true
    rate_limit: { unit: week, requests_per_unit: 0 }
  - key: files
    value: files/*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: detailed
    detailed_metric: true
    rate_limit: { unit: hour, requests_per_unit: 5 }
`).domains.get('d');

function limits(...descriptors: readonly Descriptor[]) {
  if (domain === undefined) {
    throw new TypeError('the rules of the test have a domain');
  }
  return findLimits(domain, descriptors);
}

const override = { requestsPerUnit: 3, unit: 2 };

t.test('a limit has the fields of its rule', async (t) => {
  t.match(limits(descriptor({ shadow: 'x' })), [
    {
      kind: 'limited',
      isOwn: false,
      rule: { unit: 'week', unitSeconds: 604_800, requestsPerUnit: 0, shadowMode: true, quotaMode: true },
    },
  ]);
  t.match(limits(descriptor({ plain: 'x' })), [
    {
      rule: { name: 'plain', shadowMode: false, quotaMode: false },
      keyEntries: [{ key: 'plain', value: 'x' }],
    },
  ]);
});

t.test('without a matching rule there is no limit', async (t) => {
  t.same(limits(descriptor({ other: 'x' }), descriptor({})), [undefined, undefined]);
});

t.test('an unlimited rule has no counter and still replaces', async (t) => {
  t.match(limits(descriptor({ plain: 'x' }), descriptor({ free: 'x' })), [undefined, { kind: 'unlimited' }]);
});

t.test('a replaced unlimited rule stays unlimited', async (t) => {
  t.match(limits(descriptor({ spare: 'x' }), descriptor({ last: 'x' })), [
    { kind: 'unlimited' },
    { kind: 'limited' },
  ]);
});

t.test('a rule that is replaced itself still replaces, in any order', async (t) => {
  const kinds = (...keys: string[]) =>
    limits(...keys.map((key) => descriptor({ [key]: 'x' }))).map((limit) => limit?.kind);
  t.same(kinds('plain', 'both', 'last'), [undefined, undefined, 'limited']);
  t.same(kinds('last', 'both', 'plain'), ['limited', undefined, undefined]);
});

t.test('an override keeps the modes of the rule, and takes no part in replaces', async (t) => {
  const [limit, plain] = limits(descriptor({ both: 'x' }, { limit: override }), descriptor({ plain: 'x' }));
  t.match(limit, {
    isOwn: true,
    rule: { requestsPerUnit: 3, capacity: 3, unit: 'minute', unitSeconds: 60, name: '' },
  });
  t.equal(plain?.kind, 'limited');
  t.match(limits(descriptor({ shadow: 'x' }, { limit: override })), [
    { rule: { shadowMode: true, quotaMode: true } },
  ]);
  t.match(limits(descriptor({ plain: 'x' }, { limit: override }), descriptor({ both: 'x' })), [
    { kind: 'limited' },
    { kind: 'limited' },
  ]);
  t.match(limits(descriptor({ free: 'x' }, { limit: override })), [{ kind: 'limited' }]);
});

t.test(
  'an override is named in statistics by its entries, without the value where that is empty',
  async (t) => {
    const [limit] = limits(descriptor({ a: '1', b: '' }, { limit: override }));
    t.match(limit, { metricPath: ['a_1', 'b'], keyEntries: [{ key: 'a' }, { key: 'b' }] });
  },
);

t.test('an override with empty entries has the series of envoyproxy/ratelimit', async (t) => {
  const series = (...texts: readonly (readonly [string, string])[]) => {
    const entries = texts.map(([key, value]) => ({ key, value }));
    const [limit] = limits({ entries, limit: override });
    return limit?.kind === 'limited' ? joinStatKey('d', limit.metricPath) : undefined;
  };
  t.equal(series(['', ''], ['a', '1']), 'd.a_1');
  t.equal(series(['', ''], ['', ''], ['a', ''], ['', ''], ['b', '2']), 'd.a..b_2');
  t.equal(series(['', 'v'], ['a', '']), 'd._v.a');
  t.equal(series(['', '']), 'd.');
  t.equal(series(), 'd.');
});

t.test('with share_threshold the pattern is part of the counter key', async (t) => {
  t.match(limits(descriptor({ files: 'files/x' })), [{ keyEntries: [{ key: 'files', value: 'files/*' }] }]);
});

t.test('only rules with a static series are looked up by identity', async (t) => {
  const [plain, detailed] = limits(descriptor({ plain: 'x' }), descriptor({ detailed: 'x' }));
  t.match(plain, { rule: { requestsPerUnit: 5 }, dynamicMetric: false });
  t.match(detailed, { dynamicMetric: true, metricPath: ['detailed_x'] });
});
