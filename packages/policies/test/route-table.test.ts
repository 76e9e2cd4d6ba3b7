import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { RequestAttributes, RequestMatch } from '../src/match/request-match.ts';
import { findRuleSlowly } from './helpers/oracle.ts';
import { type RandomRule, randomRequest, randomRules } from './helpers/random-routes.ts';
import { createTable, segmentsOf, toRequest } from './helpers/routes.ts';

const rule = (matches: readonly RequestMatch[], more: Partial<RandomRule> = {}): RandomRule => ({
  hosts: ['*'],
  matches,
  route: { createdMs: 0, name: 'shop/a' },
  ...more,
});

/** The position of the rule of a request. */
function findRule(
  rules: readonly RandomRule[],
  path: string,
  request: Partial<RequestAttributes> = {},
): number | undefined {
  return createTable(rules).find(toRequest(request), segmentsOf(path));
}

/** The rules in this order and in the reverse one give the same rule. */
function findInAnyOrder(
  t: Test,
  rules: readonly [RandomRule, RandomRule],
  path: string,
  request: Partial<RequestAttributes> = {},
): number | undefined {
  const found = findRule(rules, path, request);
  const reversed = findRule(rules.toReversed(), path, request);
  t.equal(reversed, found === undefined ? undefined : 1 - found, 'in the reverse order');
  return found;
}

const exact = (value: string): RequestMatch => ({ path: { type: 'Exact', value } });
const prefix = (value: string): RequestMatch => ({ path: { type: 'PathPrefix', value } });
const regex = (value: string): RequestMatch => ({ path: { type: 'RegularExpression', value } });

t.test('the most specific host goes before the most specific path', async (t) => {
  const hosts = ['a.b.test', '*.b.test', '*.test', '*'];
  const rules = hosts.map((host, index) =>
    rule([index === 0 ? prefix('/') : exact('/x')], { hosts: [host] }),
  );
  t.equal(findRule(rules, '/x', { host: 'a.b.test' }), 0);
  t.equal(findRule(rules, '/x', { host: 'c.b.test' }), 1);
  t.equal(findRule(rules, '/x', { host: 'c.d.b.test' }), 1, 'a wildcard is one or more labels');
  t.equal(findRule(rules, '/x', { host: 'b.test' }), 2, 'and never none');
  t.equal(findRule(rules, '/x', { host: 'test' }), 3);
  t.equal(findRule(rules, '/x', { host: '' }), 3);
});

t.test('a host without a matching route does not fall back to a less specific one', async (t) => {
  const rules = [rule([exact('/x')], { hosts: ['a.test'] }), rule([prefix('/')], { hosts: ['*.test', '*'] })];
  t.equal(findRule(rules, '/y', { host: 'a.test' }), undefined);
  t.equal(findRule(rules, '/y', { host: 'b.test' }), 1);
});

t.test('the case, the port and a dot at the end of a host do not matter', async (t) => {
  const rules = [rule([prefix('/')], { hosts: ['a.test'] }), rule([prefix('/')], { hosts: ['*.b.test'] })];
  for (const host of ['a.test', 'A.Test', 'a.test:443', 'a.test.', 'A.TEST.:80'])
    t.equal(findRule(rules, '/', { host }), 0, host);
  for (const host of ['x.b.test:80', 'X.B.TEST.']) t.equal(findRule(rules, '/', { host }), 1, host);
  for (const host of ['xa.test', 'a.test.evil', '[::1]:80', 'b.test', 'a.test:80:80'])
    t.equal(findRule(rules, '/', { host }), undefined, host);
});

t.test('Exact goes before RegularExpression, and that before PathPrefix', async (t) => {
  t.equal(findInAnyOrder(t, [rule([exact('/a')]), rule([regex('/a{1,1000}')])], '/a'), 0);
  t.equal(findInAnyOrder(t, [rule([exact('/a')]), rule([prefix('/a')])], '/a'), 0);
  t.equal(findInAnyOrder(t, [rule([regex('.*')]), rule([prefix('/a/b/c')])], '/a/b/c'), 0);
});

t.test('the longer prefix and the longer expression go first', async (t) => {
  t.equal(findInAnyOrder(t, [rule([prefix('/a/b')]), rule([prefix('/a')])], '/a/b/c'), 0);
  t.equal(findInAnyOrder(t, [rule([prefix('/a/b')]), rule([prefix('/a')])], '/a/c'), 1);
  t.equal(findInAnyOrder(t, [rule([regex('/a.*')]), rule([regex('.*')])], '/ab'), 0);
  const older = rule([prefix('/a/')]);
  const newer = rule([prefix('/a')], { route: { createdMs: 1, name: 'shop/b' } });
  t.equal(findInAnyOrder(t, [older, newer], '/a'), 0, 'a slash at the end of a prefix does not count');
});

t.test('then a method, more headers, and more query parameters decide', async (t) => {
  const headers = [{ name: 'x', value: '1' }];
  const twoHeaders = [...headers, { name: 'y', value: '1' }];
  const queryParams = [{ name: 'p', value: '1' }];
  const twoParams = [...queryParams, { name: 'q', value: '1' }];
  const request = { headers: { x: '1', y: '1' }, path: '/?p=1&q=1' };
  const order: readonly RequestMatch[] = [
    { methods: ['GET'], headers },
    { methods: ['GET'], queryParams: twoParams },
    { methods: ['GET'] },
    { headers: twoHeaders },
    { headers, queryParams: twoParams },
    { headers, queryParams },
    { headers },
    { queryParams: twoParams },
    { queryParams },
    {},
  ];
  for (const [index, first] of order.entries())
    for (const second of order.slice(index + 1))
      t.equal(
        findInAnyOrder(t, [rule([first]), rule([second])], '/', request),
        0,
        JSON.stringify([first, second]),
      );
});

t.test(
  'equally specific matches: the oldest route, then the first by name, then the first rule',
  async (t) => {
    const at = (createdMs: number, name: string) => rule([prefix('/')], { route: { createdMs, name } });
    t.equal(findInAnyOrder(t, [at(1, 'z/z'), at(2, 'a/a')], '/'), 0);
    t.equal(findInAnyOrder(t, [at(1, 'a/b'), at(1, 'b/a')], '/'), 0);
    t.equal(findInAnyOrder(t, [at(1, 'a/Z'), at(1, 'a/a')], '/'), 0, 'by bytes');
    t.equal(findRule([at(1, 'a/a'), at(1, 'a/a')], '/'), 0);
  },
);

t.test('paths are compared by whole segments, and with their case', async (t) => {
  const matches = (match: RequestMatch, path: string) => findRule([rule([match])], path) === 0;
  for (const path of ['/abc', '/abc/', '/abc/d', '/abc/d/e']) {
    t.ok(matches(prefix('/abc'), path), path);
    t.ok(matches(prefix('/abc/'), path), path);
    t.ok(matches(prefix('/'), path), path);
  }
  for (const path of ['/abcd', '/ab', '/ABC', '/', '/x/abc']) t.notOk(matches(prefix('/abc'), path), path);
  t.ok(matches(exact('/abc'), '/abc'));
  for (const path of ['/abc/', '/abc/d', '/Abc', '/']) t.notOk(matches(exact('/abc'), path), path);
  t.ok(matches(exact('/abc/'), '/abc/'));
  t.notOk(matches(exact('/abc/'), '/abc'));
  t.ok(matches(exact('/'), '/'));
  t.notOk(matches(exact('/'), '/a'));
  t.ok(matches(exact('/café'), '/caf%C3%A9'), 'characters outside ASCII are encoded');
  t.ok(matches(exact('/%61'), '/a'), 'escapes that are not needed are decoded');
  t.ok(matches(regex('/[a-z]+/[0-9]+'), '/abc/12'));
  t.notOk(matches(regex('/[a-z]+'), '/abc/12'), 'the whole path');
});

t.test('several headers are ANDed, several matches ORed', async (t) => {
  const headers = [
    { name: 'X-One', value: '1' },
    { name: 'x-two', value: 'v[0-9]', type: 'RegularExpression' as const },
  ];
  const rules = [rule([{ headers }, exact('/open')])];
  const both = { 'x-one': '1', 'x-two': 'v2' };
  t.equal(findRule(rules, '/', { headers: both }), 0);
  t.equal(findRule(rules, '/', { headers: { ...both, 'x-two': 'v22' } }), undefined);
  t.equal(findRule(rules, '/', { headers: { 'x-one': '1' } }), undefined);
  t.equal(findRule(rules, '/open'), 0);
  const ofPrototype = [
    rule([{ headers: [{ name: 'constructor', value: '.*', type: 'RegularExpression' }] }]),
  ];
  t.equal(findRule(ofPrototype, '/'), undefined);
});

t.test('of a repeated query parameter, the first counts', async (t) => {
  const rules = [rule([{ queryParams: [{ name: 'v', value: '2' }] }])];
  for (const query of ['v=2', 'a=1&v=2', 'v=2&v=1'])
    t.equal(findRule(rules, '/', { path: `/?${query}` }), 0, query);
  for (const query of ['', 'v', 'v=', 'v=1&v=2', 'vv=2', 'V=2', 'v=2a'])
    t.equal(findRule(rules, '/', { path: `/?${query}` }), undefined, query);
  const empty = [rule([{ queryParams: [{ name: 'v', value: '' }] }])];
  t.equal(findRule(empty, '/', { path: '/?v' }), 0);
});

t.test('random routes and requests: the table finds what the slow search finds', async (t) => {
  let found = 0;
  let total = 0;
  fc.assert(
    fc.property(randomRules, fc.array(randomRequest, { minLength: 10, maxLength: 20 }), (rules, requests) => {
      const table = createTable(rules);
      for (const request of requests) {
        const expected = findRuleSlowly(rules, request);
        total += 1;
        if (expected !== undefined) found += 1;
        if (table.find(request, segmentsOf(request.path)) !== expected) return false;
      }
      return true;
    }),
    { numRuns: 2_000 },
  );
  t.ok(found > total / 4, `${found} of ${total} requests have a route`);
});
