import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { runSteps } from '@tollgate/kit/time';
import { compilePolicy, createInvalidPolicy } from '@tollgate/policies/compile/compile';
import { type NamedPolicy, PolicyTable } from '@tollgate/policies/compile/policy-table';
import { compileRoute } from '@tollgate/policies/compile/routes';
import type { RouteReference } from '@tollgate/policies/match/route';
import { RouteIndex } from '@tollgate/policies/match/route-index';
import { readPolicy } from '@tollgate/policies/read/read-policy';
import { AccessConfigSchema, type AccessPolicy } from '@tollgate/proto/tollgate/policy/v1/access_config';
import t from 'tap';
import type { CommonSnapshot } from '../../src/catalog/snapshot.ts';
import type { ConfigObject } from '../../src/catalog/source.ts';
import type { KubeObject } from '../../src/kube/reflector.ts';
import { PolicyCatalog } from '../../src/policies/policy-catalog.ts';
import { makeObject, makeTargets } from '../support/gateway-objects.ts';
import { makePolicy, perUser } from '../support/policies.ts';

const fallback = createInvalidPolicy('fallback');

function compileMessage(
  namespace: string,
  { name, createdMs, spec, deniedHosts }: AccessPolicy,
): NamedPolicy {
  const label = `${namespace}/${name}`;
  const named = { name: label, createdMs: Number(createdMs) };
  if (spec === '') return { ...named, hosts: deniedHosts, policy: createInvalidPolicy(label) };
  const manifest = makePolicy(label, JSON.parse(spec)).manifest;
  const read = readPolicy(manifest, label);
  const compiled = read.ok ? compilePolicy(read.resource) : read;
  if (!read.ok || !compiled.ok) throw new Error(`${label} is invalid`);
  const { hosts = [], targetRefs } = read.resource.spec;
  return { ...named, hosts, policy: compiled.policy, isForRoutes: targetRefs !== undefined };
}

/** The table of an auth server that gets the snapshot. */
function toTable({ resources }: CommonSnapshot): PolicyTable {
  const configs = [...resources.values()].map(({ any }) =>
    fromBinary(AccessConfigSchema, fromBinary(AnySchema, any).value),
  );
  const routes = configs.flatMap(({ name, routes }) => routes.map((route) => compileRoute(name, route)));
  return new PolicyTable(
    configs.flatMap(({ name, policies }) => policies.map((one) => compileMessage(name, one))),
    runSteps(RouteIndex.build(routes)),
  );
}

interface Objects {
  readonly policies?: readonly ConfigObject[];
  readonly routes?: readonly KubeObject[];
  readonly gateways?: readonly KubeObject[];
}

const http = { name: 'http', protocol: 'HTTP', port: 80 };
const main = makeObject('infra/main', {
  listeners: [{ ...http, allowedRoutes: { namespaces: { from: 'All' } } }],
});
const toMain = { parentRefs: [{ namespace: 'infra', name: 'main' }] };
const prefix = (value: string) => ({ path: { type: 'PathPrefix', value } });
const makeRoute = (id: string, hostnames: readonly string[], paths: readonly string[], createdMs = 0) =>
  makeObject(id, { ...toMain, hostnames, rules: [{ matches: paths.map(prefix) }] }, { createdMs });
const target = (kind: string, name: string, more: object = {}) => ({
  targetRefs: [{ group: 'gateway.networking.k8s.io', kind, name, ...more }],
});
const open = { access: { type: 'Public' } };

/** Hosts that the platform allows. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  shop: ['shop.test', 'both.test'],
  evil: ['evil.test', 'both.test'],
};

/** The team `shop` has a route, hosts, and a policy for each. */
const ofShop = {
  policies: [
    makePolicy('shop/orders', { ...target('HTTPRoute', 'orders'), limits: [perUser] }, { createdMs: 5 }),
    makePolicy('shop/web', { hosts: ['shop.test', 'both.test'] }, { createdMs: 5 }),
  ],
  routes: [makeRoute('shop/orders', ['orders.test'], ['/orders'], 5)],
};

function start({ policies = [], routes = [], gateways = [] }: Objects) {
  const { targets } = makeTargets({
    gateways: [main, ...gateways],
    httpRoutes: [...ofShop.routes, ...routes],
  });
  const catalog = new PolicyCatalog({ targets, allowedHosts: (namespace) => allowed[namespace] ?? [] });
  const objects = [...ofShop.policies, ...policies];
  const { access, documents, results } = runSteps(catalog.apply([{ type: 'replaced', objects }]));
  const table = toTable(access);
  const find = (host: string, path = '/', route?: RouteReference) => {
    const segments = path.split('/').filter((segment) => segment !== '');
    const request = { method: 'GET', host, path, headers: {}, route };
    const found = table.find(request, { segments, hasTrailingSlash: false }, fallback);
    return found?.policies.map(({ name }) => name);
  };
  const reasons = (id: string) =>
    results.find((result) => result.id === id)?.problems.map(({ reason }) => reason);
  return { find, reasons, documents };
}

const orders: RouteReference = { kind: 'HTTPRoute', namespace: 'shop', name: 'orders', sectionName: '' };

/** Attempts of another team, with the reasons in the status of its policy `evil/a`. */
const attempts: Readonly<Record<string, Objects & { readonly reasons?: readonly string[] }>> = {
  'the route of another namespace': {
    policies: [makePolicy('evil/a', { ...target('HTTPRoute', 'orders'), ...open })],
    reasons: ['TargetNotFound'],
  },
  'a namespace in the target': {
    policies: [makePolicy('evil/a', { ...target('HTTPRoute', 'orders', { namespace: 'shop' }), ...open })],
    reasons: ['Invalid', 'TargetNotFound'],
  },
  'a path in the name of the target': {
    policies: [makePolicy('evil/a', { ...target('HTTPRoute', '../shop/orders'), ...open })],
    reasons: ['Invalid', 'TargetNotFound'],
  },
  'the Gateway of the platform': {
    policies: [makePolicy('evil/a', { ...target('Gateway', 'main'), overrides: open })],
    reasons: ['TargetNotFound'],
  },
  'an older policy of the same host': {
    policies: [makePolicy('evil/a', { hosts: ['shop.test'], ...open }, { createdMs: 1 })],
    reasons: ['HostNotAllowed'],
  },
  'a host in other spellings': {
    policies: [makePolicy('evil/a', { hosts: ['SHOP.test', 'shop.test.', 'shop.test:80'], ...open })],
    reasons: ['Invalid', 'Invalid', 'Invalid', 'HostNotAllowed'],
  },
  wildcards: {
    policies: [makePolicy('evil/a', { hosts: ['*', '*.test', '*.shop.test'], ...open }, { createdMs: 1 })],
    reasons: ['HostNotAllowed'],
  },
  'the host of a route': {
    policies: [makePolicy('evil/a', { hosts: ['orders.test'], ...open }, { createdMs: 1 })],
    reasons: ['HostNotAllowed'],
  },
  'a host that both teams may have, with a younger policy': {
    policies: [makePolicy('evil/a', { hosts: ['both.test'], ...open }, { createdMs: 9 })],
    reasons: ['Conflicted'],
  },
  'a policy and a route with the names of others': {
    policies: [
      makePolicy('evil/orders', { ...target('HTTPRoute', 'orders'), ...open, limits: [] }),
      makePolicy('evil/web', { hosts: ['evil.test'], ...open }),
    ],
    routes: [makeRoute('evil/orders', ['evil.test'], ['/orders'], 1)],
  },
  'a younger route for the same host and path': {
    policies: [makePolicy('evil/a', { ...target('HTTPRoute', 'mine'), ...open })],
    routes: [makeRoute('evil/mine', ['orders.test'], ['/orders'], 9)],
    reasons: [],
  },
  'a Gateway for every host': {
    policies: [makePolicy('evil/a', { ...target('Gateway', 'main'), ...open, overrides: open })],
    gateways: [makeObject('evil/main', { listeners: [http] })],
    reasons: [],
  },
  'a Gateway that takes routes of other namespaces': {
    policies: [makePolicy('evil/a', { ...target('Gateway', 'all'), ...open })],
    gateways: [makeObject('evil/all', main.manifest.spec)],
    routes: [makeRoute('evil/orders', ['orders.test'], ['/orders'], 9)],
    reasons: [],
  },
};

t.test('a team can neither replace nor loosen the policies of another one', async (t) => {
  for (const [attempt, objects] of Object.entries(attempts)) {
    const { find, reasons, documents } = start(objects);
    t.same(find('orders.test', '/orders/1', orders), ['shop/orders'], `the matched route: ${attempt}`);
    t.ok(find('orders.test', '/orders/1')?.includes('shop/orders'), `the host and path: ${attempt}`);
    for (const host of ['shop.test', 'both.test'])
      t.ok(find(host)?.includes('shop/web'), `${host}: ${attempt}`);
    t.match(documents.get('policy/shop/orders'), { domain: 'policy/shop/orders' });
    if (objects.reasons !== undefined) t.same(reasons('evil/a'), objects.reasons, attempt);
  }
});

t.test('teams with the same names have limits of their own', async (t) => {
  const { documents } = start({
    policies: [makePolicy('evil/orders', { hosts: ['evil.test'], limits: [{ ...perUser, requests: 1 }] })],
  });
  t.same([...documents.keys()].toSorted(), ['policy/evil/orders', 'policy/shop/orders']);
});

t.test('a team cannot loosen the overrides of a Gateway whose listener takes its route', async (t) => {
  const ofPlatform = makePolicy('infra/gate', {
    ...target('Gateway', 'main'),
    overrides: { access: { roles: ['staff'] } },
  });
  const { find } = start({
    policies: [ofPlatform, makePolicy('evil/a', { ...target('HTTPRoute', 'mine'), ...open })],
    routes: [makeRoute('evil/mine', ['evil.test'], ['/'])],
  });
  const mine = { ...orders, namespace: 'evil', name: 'mine' };
  t.same(find('evil.test', '/', mine), ['evil/a', 'infra/gate']);
  t.same(find('evil.test'), ['evil/a', 'infra/gate']);
  t.same(find('orders.test', '/orders', orders), ['shop/orders', 'infra/gate']);
});
