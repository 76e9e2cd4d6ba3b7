import t from 'tap';
import { applyReplaces } from '../src/match/match.ts';
import { loadDomain, matchOf } from './helpers/load-rules.ts';

const limit = 'rate_limit: { unit: minute, requests_per_unit: 1 }';

t.test('the number of entries must equal the depth of the rule', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - key: a
    ${limit}
    descriptors:
      - key: b
        descriptors:
          - { key: c, ${limit} }
`);
  t.equal(matchOf(root, ['a', '1'])?.rule.path, 'd.a', 'a limit on an inner node serves shorter requests');
  t.equal(matchOf(root, ['a', '1'], ['b', '2']), undefined, 'a placeholder holds no limit');
  t.equal(matchOf(root, ['a', '1'], ['b', '2'], ['c', '3'])?.rule.path, 'd.a.b.c');
  t.equal(
    matchOf(root, ['a', '1'], ['b', '2'], ['c', '3'], ['d', '4']),
    undefined,
    'a deeper request does not match',
  );
  t.equal(matchOf(root), undefined, 'no entries, no limit');
});

t.test('key and value precede a wildcard, a wildcard precedes the bare key', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - { key: k, ${limit} }
  - { key: k, value: ab*, ${limit} }
  - { key: k, value: a*, ${limit} }
  - { key: k, value: abc, ${limit} }
`);
  t.equal(matchOf(root, ['k', 'abc'])?.rule.path, 'd.k_abc');
  t.equal(matchOf(root, ['k', 'abd'])?.rule.path, 'd.k_ab*', 'the first wildcard in the file wins');
  t.equal(matchOf(root, ['k', 'ax'])?.rule.path, 'd.k_a*');
  t.equal(matchOf(root, ['k', 'x'])?.rule.path, 'd.k');
  t.equal(matchOf(root, ['k', 'a*'])?.rule.path, 'd.k_a*', 'the text of a pattern finds that pattern itself');
  t.equal(matchOf(root, ['K', 'x']), undefined, 'case matters');
});

t.test('the node found first is final: its sibling with the bare key is not tried', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - { key: k, value: v, descriptors: [{ key: x, ${limit} }] }
  - { key: k, descriptors: [{ key: y, ${limit} }] }
`);
  t.equal(matchOf(root, ['k', 'v'], ['y', '1']), undefined);
  t.equal(matchOf(root, ['k', 'w'], ['y', '1'])?.rule.path, 'd.k.y');
});

t.test('a level is found by the joined key and value', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - { key: a_b, ${limit} }
  - { key: e, ${limit} }
`);
  t.equal(matchOf(root, ['a', 'b'])?.rule.path, 'd.a_b');
  t.equal(matchOf(root, ['a_b', 'anything'])?.rule.path, 'd.a_b');
  t.equal(matchOf(root, ['e', ''])?.rule.path, 'd.e', 'an empty value falls back to the bare key');
});

t.test('wildcards match anywhere in a value, more than once, and in a key', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - { key: path, value: /v*/users/*/photo, ${limit} }
  - { key: path, value: "*.png", ${limit} }
  - { key: x-*, ${limit} }
`);
  t.equal(matchOf(root, ['path', '/v2/users/7/photo'])?.rule.path, 'd.path_/v*/users/*/photo');
  t.equal(matchOf(root, ['path', '/v2/users/photo']), undefined);
  t.equal(matchOf(root, ['path', 'a.png'])?.rule.path, 'd.path_*.png');
  t.equal(matchOf(root, ['x-tenant', 'a'])?.rule.path, 'd.x-*');
});

t.test('names of inherited properties are ordinary keys', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - { key: __proto__, value: x, ${limit} }
`);
  t.equal(matchOf(root, ['__proto__', 'x'])?.rule.path, 'd.__proto___x');
  t.equal(matchOf(root, ['constructor', '']), undefined);
  t.equal(matchOf(root, ['toString', '']), undefined);
});

t.test('requests share one Match when it does not depend on the request', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - { key: k, ${limit} }
`);
  const match = matchOf(root, ['k', '1']);
  t.ok(match);
  t.equal(matchOf(root, ['k', '2']), match);
  t.equal(match?.metricPath, match?.rule.metricPath);
  t.equal(match?.keyEntries, undefined);
});

t.test('share_threshold puts the pattern into the key entries of its own level', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - key: files
    value: files/*
    share_threshold: true
    ${limit}
    descriptors:
      - { key: user, ${limit} }
`);
  t.same(matchOf(root, ['files', 'files/a.txt'])?.keyEntries, [{ key: 'files', value: 'files/*' }]);
  t.same(matchOf(root, ['files', 'files/a.txt'], ['user', 'u'])?.keyEntries, [
    { key: 'files', value: 'files/*' },
    { key: 'user', value: 'u' },
  ]);
});

t.test('the shared pattern begins after the key of the request', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - { key: path, value: a_*, share_threshold: true, ${limit} }
  - { key: fo*, value: x, share_threshold: true, ${limit} }
  - { key: ba*, share_threshold: true, ${limit} }
`);
  t.same(matchOf(root, ['path', 'a_b'])?.keyEntries, [{ key: 'path', value: 'a_*' }]);
  t.same(matchOf(root, ['path_a', 'b'])?.keyEntries, [{ key: 'path_a', value: '*' }]);
  t.same(matchOf(root, ['foo', 'x'])?.keyEntries, [{ key: 'foo', value: 'fo*_x' }]);
  t.same(matchOf(root, ['bar', 'y'])?.keyEntries, [{ key: 'bar', value: 'ba*' }]);
});

t.test('a rule has its configuration', async (t) => {
  const root = loadDomain(`
domain: d
descriptors:
  - key: k
    shadow_mode: true
    quota_mode: true
    metadata: { plan: free }
    rate_limit:
      unit: week
      requests_per_unit: 7
      name: weekly
      replaces: [{ name: daily }, { name: hourly }]
  - { key: u, rate_limit: { unlimited: true } }
`);
  t.match(matchOf(root, ['k', ''])?.rule, {
    path: 'd.k',
    domain: 'd',
    unit: 'week',
    unitSeconds: 604_800,
    requestsPerUnit: 7,
    unlimited: false,
    name: 'weekly',
    replaces: ['daily', 'hourly'],
    shadowMode: true,
    quotaMode: true,
    metadata: { plan: 'free' },
  });
  t.match(matchOf(root, ['u', ''])?.rule, {
    unlimited: true,
    unit: undefined,
    unitSeconds: 0,
    requestsPerUnit: 0,
  });
});

const root = loadDomain(`
domain: d
descriptors:
  - { key: base, rate_limit: { unit: minute, requests_per_unit: 1, name: base } }
  - { key: nameless, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: vip, rate_limit: { unit: minute, requests_per_unit: 9, name: vip, replaces: [{ name: base }] } }
  - { key: staff, rate_limit: { unlimited: true, replaces: [{ name: vip }, { name: nothing }] } }
`);
const match = (key: string) => matchOf(root, [key, '']);

t.test('a rule replaces those it names, in any order of the request', async (t) => {
  t.same(applyReplaces([match('base'), match('vip')]), [true, false]);
  t.same(applyReplaces([match('vip'), match('base')]), [false, true]);
});

t.test('a replaced rule still replaces others', async (t) => {
  t.same(applyReplaces([match('base'), match('vip'), match('staff')]), [true, true, false]);
});

t.test('unmatched descriptors, rules without a name and unknown names are not replaced', async (t) => {
  t.same(applyReplaces([undefined, match('nameless'), match('staff')]), [false, false, false]);
  t.same(applyReplaces([match('base')]), [false]);
});
