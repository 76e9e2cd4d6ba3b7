import { runSteps } from '@tollgate/kit/time';
import t from 'tap';
import { type CompiledPolicy, createInvalidPolicy } from '../src/compile/compile.ts';
import { PolicyTable } from '../src/compile/policy-table.ts';
import { compileRoute } from '../src/compile/routes.ts';
import type { RequestAttributes } from '../src/match/request-match.ts';
import type { RouteReference } from '../src/match/route.ts';
import { RouteIndex } from '../src/match/route-index.ts';
import { compileValid } from './helpers/policies.ts';
import { segmentsOf, toRequest } from './helpers/routes.ts';

const fallback = createInvalidPolicy('fallback');

const named = (name: string, hosts: readonly string[] = [], createdMs = 0) => ({
  ...{ name, createdMs, hosts, policy: createInvalidPolicy(name) },
});

/** A policy of a Gateway with overrides, whose name there is `<name>!`. */
function withOverrides(name: string) {
  const policy: CompiledPolicy = { ...createInvalidPolicy(name), overrides: createInvalidPolicy(`${name}!`) };
  return { name, createdMs: 0, hosts: [], policy };
}

interface RuleOptions {
  readonly sectionName?: string;
  readonly hosts?: readonly string[];
  readonly matches?: readonly object[];
  readonly policy?: string;
  readonly overrides?: readonly string[];
  readonly gateways?: readonly string[];
}

function route(name: string, rules: readonly RuleOptions[], { kind = 'HTTPRoute', createdMs = 0n } = {}) {
  return compileRoute('shop', {
    ...{ kind, name, createdMs },
    rules: rules.map(({ matches = [], ...rule }) => ({
      ...{ sectionName: '', hosts: ['*'], policy: '', overrides: [], gateways: ['infra/main:80'] },
      ...rule,
      matches: matches.map((match) => JSON.stringify(match)),
    })),
  });
}

const prefix = (value: string) => ({ path: { type: 'PathPrefix', value } });
const reference = (name: string, sectionName = ''): RouteReference => ({
  ...{ kind: 'HTTPRoute', namespace: 'shop', name, sectionName },
});

const createIndex = (routes: readonly ReturnType<typeof route>[]) => runSteps(RouteIndex.build(routes));

/** Names of the policies of a request. */
function finder(policies: readonly ReturnType<typeof named>[], routes: readonly ReturnType<typeof route>[]) {
  const table = new PolicyTable(policies, createIndex(routes));
  return (request: Partial<RequestAttributes>, of?: RouteReference) =>
    table
      .find({ ...toRequest(request), route: of }, segmentsOf(request.path ?? '/'), fallback)
      ?.policies.map(({ name }) => name);
}

t.test('of two policies for a host, the older one applies', async (t) => {
  const table = new PolicyTable([
    named('shop/new', ['a.test', 'b.test'], 2),
    named('shop/old', ['a.test'], 1),
    named('shop/every', ['*.test']),
  ]);
  const find = (host: string) => table.find(toRequest({ host }), segmentsOf('/any/path'), fallback)?.policies;
  t.match(find('a.test'), [{ name: 'shop/old' }]);
  t.match(find('b.test:443'), [{ name: 'shop/new' }]);
  t.match(find('c.test'), [{ name: 'shop/every' }]);
  t.same(find('c.example'), [fallback]);
  t.match(table.find(toRequest({ host: 'a.test' }), undefined, fallback)?.policies, [{ name: 'shop/old' }]);
});

t.test('without the word of a gateway, a request has the policy of its route by precedence', async (t) => {
  const find = finder(
    [named('shop/orders'), named('shop/export')],
    [
      route('orders', [
        { hosts: ['a.test'], matches: [prefix('/orders')], policy: 'shop/orders' },
        { hosts: ['a.test'], matches: [prefix('/orders/export')], policy: 'shop/export' },
      ]),
      route('open', [{ hosts: ['a.test'] }]),
    ],
  );
  t.same(find({ host: 'A.test:8080', path: '/orders/1' }), ['shop/orders']);
  t.same(find({ host: 'a.test', path: '/orders/export/1' }), ['shop/export']);
  t.same(find({ host: 'a.test', path: '/' }), ['fallback'], 'a route without a policy takes it');
  t.same(find({ host: 'b.test', path: '/orders' }), ['fallback'], 'no route has the host');
});

t.test('the route that a gateway has matched is exact', async (t) => {
  const find = finder(
    [named('shop/orders'), named('shop/export')],
    [
      route('orders', [
        { matches: [prefix('/orders')], policy: 'shop/orders' },
        { sectionName: 'export', matches: [prefix('/export')], policy: 'shop/export' },
      ]),
    ],
  );
  t.same(find({ path: '/anything' }, reference('orders')), ['shop/orders']);
  t.same(find({ path: '/orders' }, reference('orders', 'export')), ['shop/export']);
  t.equal(find({}, reference('new')), undefined, 'a route that is not known yet');
  t.equal(find({}, reference('orders', 'new')), undefined, 'a rule that is not known yet');
});

t.test('with a policy for routes but no routes, a route of the gateway is unknown', async (t) => {
  const policies = [{ ...named('shop/orders'), isForRoutes: true }];
  const find = finder(policies, []);
  t.equal(find({}, reference('orders')), undefined);
  t.same(find({}), ['fallback'], 'without the word of a gateway');
  t.same(
    finder([named('shop/a', ['a.test'])], [])({}, reference('orders')),
    ['shop/a'],
    'no policy for routes',
  );
});

t.test('overrides of Gateways hold in addition, each policy once', async (t) => {
  const find = finder(
    [named('shop/orders'), withOverrides('infra/gateway'), withOverrides('infra/listener')],
    [
      route('orders', [{ policy: 'shop/orders', overrides: ['infra/gateway', 'infra/listener'] }]),
      route('own', [{ hosts: ['own.test'], policy: 'infra/gateway', overrides: ['infra/gateway'] }]),
      route('none', [{ hosts: ['none.test'], overrides: ['infra/gateway', 'shop/orders'] }]),
    ],
  );
  t.same(find({}), ['shop/orders', 'infra/gateway!', 'infra/listener!']);
  t.same(find({ host: 'own.test' }), ['infra/gateway', 'infra/gateway!']);
  t.same(
    find({ host: 'none.test' }),
    ['fallback', 'infra/gateway!', 'shop/orders'],
    'an invalid policy denies',
  );
});

t.test('a policy that is not in the set denies', async (t) => {
  const table = new PolicyTable([], createIndex([route('orders', [{ policy: 'shop/missing' }])]));
  const found = table.find(toRequest(), segmentsOf('/'), fallback);
  t.match(found?.policies, [{ name: 'shop/missing', fallback: { access: { type: 'Invalid' } } }]);
});

t.test('a Gateway takes requests that no route takes', async (t) => {
  const find = finder(
    [named('shop/orders'), named('infra/gateway')],
    [
      route('orders', [{ hosts: ['a.test'], matches: [prefix('/orders')], policy: 'shop/orders' }]),
      route('main', [{ hosts: ['*.test'], policy: 'infra/gateway' }], { kind: 'Gateway' }),
    ],
  );
  t.same(find({ host: 'a.test', path: '/orders' }), ['shop/orders']);
  t.same(find({ host: 'a.test', path: '/other' }), ['infra/gateway']);
  t.same(find({ host: 'b.test', path: '/orders' }), ['infra/gateway']);
  t.same(find({ host: 'b.example', path: '/orders' }), ['fallback']);
});

t.test('at which of two Gateways a request arrived is not known, so both must allow', async (t) => {
  const gateways = (name: string) => [`infra/${name}:80`, `infra/${name}:443`];
  const find = finder(
    [named('shop/inside'), named('shop/outside')],
    [
      route('orders', [
        { hosts: ['a.test'], policy: 'shop/inside', gateways: gateways('inside') },
        { hosts: ['*.test'], policy: 'shop/outside', gateways: gateways('outside') },
      ]),
      route('single', [{ hosts: ['b.test'], gateways: gateways('inside'), policy: 'shop/inside' }]),
    ],
  );
  t.same(find({ host: 'a.test' }), ['shop/inside', 'shop/outside']);
  t.same(find({ host: 'a.test' }, reference('orders')), ['shop/inside', 'shop/outside']);
  t.same(find({ host: 'c.test' }, reference('orders')), ['shop/outside'], 'the host decides');
  t.same(find({ host: 'other' }, reference('orders')), ['shop/inside', 'shop/outside'], 'no host decides');
  t.same(find({ host: 'b.test' }), ['shop/inside', 'shop/outside'], 'other routes at the other Gateway');
  t.same(find({ host: 'b.test' }, reference('single')), ['shop/inside']);
});

t.test('of the listeners of one Gateway, that of the most specific host applies', async (t) => {
  const find = finder(
    [named('shop/a'), named('shop/every')],
    [
      route('orders', [
        { hosts: ['a.test'], policy: 'shop/a' },
        { hosts: ['*.test'], policy: 'shop/every' },
      ]),
    ],
  );
  for (const known of [undefined, reference('orders')]) {
    t.same(find({ host: 'a.test' }, known), ['shop/a']);
    t.same(find({ host: 'b.test' }, known), ['shop/every']);
  }
});

t.test('a policy by hosts must allow, too, unless the gateway says a route that has a policy', async (t) => {
  const find = finder(
    [named('shop/hosts', ['a.test']), named('shop/orders')],
    [
      route('orders', [{ policy: 'shop/orders' }]),
      route('none', [{ hosts: ['a.test'], matches: [prefix('/none')] }]),
    ],
  );
  t.same(find({ host: 'b.test' }), ['shop/orders']);
  t.same(find({ host: 'a.test', path: '/none' }), ['shop/hosts'], 'the route has no policy');
  t.same(find({ host: 'a.test' }, reference('orders')), ['shop/orders']);
  t.same(find({ host: 'a.test' }, reference('none')), ['shop/hosts']);
  const both = finder(
    [named('shop/hosts', ['a.test']), named('shop/orders')],
    [route('orders', [{ policy: 'shop/orders' }])],
  );
  t.same(both({ host: 'a.test' }), ['shop/orders', 'shop/hosts']);
});

t.test('a host with a final dot may be that of a route for every host', async (t) => {
  const find = finder(
    [named('shop/a'), named('shop/every')],
    [route('a', [{ hosts: ['a.test'], policy: 'shop/a' }]), route('every', [{ policy: 'shop/every' }])],
  );
  t.same(find({ host: 'a.test' }), ['shop/a']);
  t.same(find({ host: 'a.test.' }), ['shop/a', 'shop/every']);
  t.same(find({ host: 'a.test.:80' }), ['shop/a', 'shop/every']);
});

t.test('a match that cannot be compiled denies what no more specific match takes', async (t) => {
  const regex = { path: { type: 'RegularExpression', value: '(' } };
  for (const broken of [
    regex,
    { path: { type: 'Glob', value: '/a' } },
    { cookies: ['a'] },
    { methods: ['FETCH'] },
  ]) {
    const find = finder(
      [named('shop/orders'), named('shop/exact')],
      [
        route('broken', [{ matches: [broken], policy: 'shop/orders' }]),
        route('exact', [{ matches: [{ ...prefix('/a'), methods: ['GET'] }], policy: 'shop/exact' }]),
      ],
    );
    t.same(find({ path: '/b' }), ['shop/broken'], JSON.stringify(broken));
    const istio = broken === regex ? ['shop/broken'] : [];
    t.same(find({ path: '/a' }), [...istio, 'shop/exact'], JSON.stringify(broken));
  }
});

t.test('matches of routes are those of Gateway API', async (t) => {
  const find = finder(
    [named('shop/get'), named('shop/eu')],
    [
      route('a', [{ matches: [{ methods: ['GET'], headers: [] }], policy: 'shop/get' }]),
      route('b', [
        {
          matches: [
            {
              ...prefix('/eu'),
              headers: [
                { name: 'X-Region', value: 'eu' },
                { name: 'x-region', value: 'us' },
              ],
            },
          ],
          policy: 'shop/eu',
        },
      ]),
    ],
  );
  t.same(find({ method: 'GET' }), ['shop/get']);
  t.same(find({ method: 'HEAD' }), ['fallback'], 'GET does not include HEAD');
  const headers = { 'x-region': 'eu' };
  t.same(find({ method: 'POST', path: '/eu/1', headers }), ['shop/eu'], 'of equal names, the first counts');
});

t.test('headers that routes compare are collected', async (t) => {
  const matches = [{ headers: [{ name: 'X-Region', value: 'eu' }] }];
  const table = new PolicyTable([compileNamed()], createIndex([route('a', [{ matches }])]));
  t.same([...table.headers], ['x-region', 'x-one']);
});

function compileNamed() {
  const policy = compileValid(
    '  hosts: [a.test]\n  limits: [{ name: a, by: [{ header: x-one }], requests: 1, per: Hour }]',
  );
  return { ...named('shop/a'), policy };
}

t.test('where gateways order matches differently, the policies of all orders must allow', async (t) => {
  const header = (name: string) => ({ name, value: '1' });
  const find = finder(
    [named('shop/regex'), named('shop/prefix'), named('shop/method'), named('shop/headers')],
    [
      route('regex', [
        {
          hosts: ['a.test'],
          matches: [{ path: { type: 'RegularExpression', value: '/a.*' } }],
          policy: 'shop/regex',
        },
        { hosts: ['a.test'], matches: [prefix('/abc')], policy: 'shop/prefix' },
      ]),
      route('headers', [
        { hosts: ['b.test'], matches: [{ methods: ['GET'] }], policy: 'shop/method' },
        { hosts: ['b.test'], matches: [{ headers: [header('x-a'), header('x-b')] }], policy: 'shop/headers' },
      ]),
    ],
  );
  t.same(find({ host: 'a.test', path: '/abc' }), ['shop/regex', 'shop/prefix'], 'Istio: the prefix');
  t.same(find({ host: 'a.test', path: '/ab' }), ['shop/regex']);
  const headers = { 'x-a': '1', 'x-b': '1' };
  t.same(find({ host: 'b.test', headers }), ['shop/method', 'shop/headers'], 'Envoy Gateway: more headers');
  t.same(find({ host: 'b.test' }), ['shop/method']);
});

t.test('a match of the header Host compares the host of the request', async (t) => {
  const host = (more: object) => ({ headers: [{ name: 'Host', ...more }] });
  const find = finder(
    [named('shop/a'), named('shop/b')],
    [
      route('a', [{ policy: 'shop/a', matches: [host({ value: 'a.test:8080' })] }]),
      route('b', [{ policy: 'shop/b', matches: [host({ type: 'RegularExpression', value: '.*' })] }]),
    ],
  );
  t.same(find({ host: 'a.test:8080' }), ['shop/a']);
  t.same(find({ host: 'b.test', headers: { host: 'a.test:8080' } }), ['shop/b']);
  t.same(find({ host: '' }), ['fallback']);
});

t.test('the host does not tell listeners with TLS apart', async (t) => {
  const at = (listener: string) => ({ gateways: [`infra/main:443/${listener}`] });
  const find = finder(
    [named('shop/every'), named('shop/one')],
    [
      route('every', [{ policy: 'shop/every', ...at('every') }]),
      route('one', [{ policy: 'shop/one', hosts: ['a.test'], ...at('one') }]),
    ],
  );
  t.same(find({ host: 'a.test' }), ['shop/every', 'shop/one'], 'a connection may be for another name');
  t.same(find({ host: 'b.test' }), ['shop/every']);
});
