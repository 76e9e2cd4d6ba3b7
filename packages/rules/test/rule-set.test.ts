import t from 'tap';
import { parseUnit } from '../src/compile/check-limit.ts';
import { unitSeconds } from '../src/match/rule-set.ts';
import { loadDomain, matchOf } from './helpers/load-rules.ts';

const limit = 'rate_limit: { unit: minute, requests_per_unit: 1 }';
const one = (fields: string) => loadDomain(`domain: d\ndescriptors: [{ ${fields}, ${limit} }]`);

t.test('levels are named as configured by default', async (t) => {
  t.same(matchOf(one('key: k'), ['k', 'v'])?.metricPath, ['k']);
  t.same(matchOf(one('key: k, value: v'), ['k', 'v'])?.metricPath, ['k_v']);
  t.same(matchOf(one('key: k, value: v*'), ['k', 'vx'])?.metricPath, ['k_v*']);
  t.equal(matchOf(one('key: k, value: v*'), ['k', 'vx'])?.dynamicMetric, false);
});

t.test('value_to_metric adds the value of the request to bare keys and wildcards', async (t) => {
  const bare = one('key: k, value_to_metric: true');
  t.same(matchOf(bare, ['k', 'v'])?.metricPath, ['k_v']);
  t.equal(matchOf(bare, ['k', 'v'])?.dynamicMetric, true);
  t.same(matchOf(bare, ['k', ''])?.metricPath, ['k'], 'an empty value adds nothing');
  t.same(matchOf(one('key: k, value: v*, value_to_metric: true'), ['k', 'vx'])?.metricPath, ['k_vx']);
  const any = one('key: plan, value: "*", value_to_metric: true');
  t.same(matchOf(any, ['plan', ''])?.metricPath, ['plan'], 'nor behind a wildcard');
  const exact = matchOf(one('key: k, value: v, value_to_metric: true'), ['k', 'v']);
  t.same(exact?.metricPath, ['k_v']);
  t.equal(exact?.dynamicMetric, false, 'the value of an exact rule is known beforehand');
});

t.test('value_to_metric applies to its own level only', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - key: a
    descriptors:
      - key: b
        value_to_metric: true
        descriptors:
          - { key: c, value: x, ${limit} }
`);
  t.same(matchOf(root, ['a', '1'], ['b', '2'], ['c', 'x'])?.metricPath, ['a', 'b_2', 'c_x']);
});

t.test('detailed_metric names every level by key and value of the request', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - key: a
    descriptors:
      - { key: b, detailed_metric: true, value_to_metric: true, ${limit} }
`);
  t.same(matchOf(root, ['a', '1'], ['b', '2'])?.metricPath, ['a_1', 'b_2']);
  t.same(
    matchOf(root, ['a', '1'], ['b', ''])?.metricPath,
    ['a_1', 'b_'],
    'an empty value leaves the underscore',
  );
});

t.test('detailed_metric above the leaf changes nothing', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - key: a
    detailed_metric: true
    descriptors:
      - { key: b, ${limit} }
`);
  t.same(matchOf(root, ['a', '1'], ['b', '2'])?.metricPath, ['a', 'b']);
});

t.test('with share_threshold the metric has the part before the star', async (t) => {
  const shared = 'key: files, value: "files/*/x*", share_threshold: true';
  const request = ['files', 'files/a/xy'] as const;
  t.same(matchOf(one(`${shared}, value_to_metric: true`), request)?.metricPath, ['files_files/']);
  t.equal(matchOf(one(`${shared}, value_to_metric: true`), request)?.dynamicMetric, false);
  t.same(matchOf(one(`${shared}, detailed_metric: true`), request)?.metricPath, ['files_files/']);
  t.same(
    matchOf(one(shared), request)?.metricPath,
    ['files_files/*/x*'],
    'alone it leaves the name as configured',
  );
});

t.test('detailed metrics of a rule with a shared level omit empty values', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - key: files
    value: f/*
    share_threshold: true
    descriptors:
      - { key: user, detailed_metric: true, ${limit} }
`);
  t.same(matchOf(root, ['files', 'f/x'], ['user', 'u'])?.metricPath, ['files_f/', 'user_u']);
  t.same(matchOf(root, ['files', 'f/x'], ['user', ''])?.metricPath, ['files_f/', 'user']);
});

t.test('with share_threshold and a star in the key alone the part before that star is named', async (t) => {
  const shared = 'key: fo*, value: x, share_threshold: true';
  t.same(matchOf(one(`${shared}, value_to_metric: true`), ['foo', 'x'])?.metricPath, ['fo']);
  t.same(matchOf(one(shared), ['foo', 'x'])?.metricPath, ['fo*_x']);
});

t.test('every unit is read in any case', async (t) => {
  for (const unit of ['second', 'minute', 'hour', 'day', 'week', 'month', 'year']) {
    t.equal(parseUnit(unit), unit);
    t.equal(parseUnit(unit.toUpperCase()), unit);
  }
});

t.test('unknown, empty and inherited names are not units', async (t) => {
  for (const text of ['unknown', '', 'seconds', 'constructor', '__proto__', ' day'])
    t.equal(parseUnit(text), undefined);
});

t.test('windows are fixed: a month is 30 days, a year 365', async (t) => {
  t.same(Object.values(unitSeconds), [1, 60, 3600, 86_400, 604_800, 2_592_000, 31_536_000]);
});
