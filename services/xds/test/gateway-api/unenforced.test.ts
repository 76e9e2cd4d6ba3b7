import t from 'tap';
import { makeObject, makeTargeted, makeTargets } from '../support/gateway-objects.ts';

const group = 'gateway.networking.k8s.io';
const authService = 'tollgate/tollgate-auth-headless';
const listeners = [
  { name: 'http', protocol: 'HTTP', port: 80 },
  { name: 'https', protocol: 'HTTPS', port: 443 },
];
const gatewayClass = makeObject('/eg', { controllerName: 'gateway.envoyproxy.io/gatewayclass-controller' });
const gateway = makeObject('shop/main', { gatewayClassName: 'eg', listeners });
const parentRefs = [{ name: 'main' }];
const orders = makeObject('shop/orders', { parentRefs, rules: [{ name: 'read' }, {}] });
const extAuth = { grpc: { backendRefs: [{ name: 'tollgate-auth-headless', namespace: 'tollgate' }] } };
const otherAuth = { http: { backendRef: { name: 'other' } } };
const cors = { allowOrigins: ['https://app.test'] };

/** A SecurityPolicy of targets `Kind/name` or `Kind/name/section`. */
function secure(name: string, targets: readonly string[], spec: object, createdMs = 0) {
  const targetRefs = targets.map((target) => {
    const [kind, of, sectionName] = target.split('/');
    return { group, kind, name: of, sectionName };
  });
  return makeObject(`shop/${name}`, { targetRefs, ...spec }, { createdMs });
}

const ours = secure('ours', ['Gateway/main'], { extAuth });

interface Given {
  readonly policies: Parameters<typeof makeTargets>[0]['securityPolicies'];
  readonly targets?: readonly string[];
  readonly world?: Parameters<typeof makeTargets>[0];
}

/** Result of the policy shop/orders at its Gateway: the reason and the message. */
function judge({ policies = [], targets = ['HTTPRoute/orders'], world }: Given): string {
  const { resolve } = makeTargets({
    ...{ gateways: [gateway], httpRoutes: [orders], gatewayClasses: [gatewayClass] },
    ...{ securityPolicies: policies, authServices: [authService], ...world },
  });
  const [first] = resolve(makeTargeted('shop/orders', targets)).ancestors.get('shop/orders') ?? [];
  const { unenforced } = first ?? {};
  return unenforced === undefined ? 'nothing' : `${unenforced.reason}: ${unenforced.message}`;
}

const notAttached = `NotAttached: no SecurityPolicy of Gateway shop/main has extAuth with the Service ${authService}: apply one, or add { kind: EnvoyGateway, namespace: shop, name: main } to the value auth.gateways of the chart`;
const replaces = (of: string) =>
  `Bypassed: SecurityPolicy shop/cors of ${of} replaces extAuth of SecurityPolicy shop/ours`;
const line = 'add the line mergeType: StrategicMerge to its spec';

t.test('a Gateway without our external authorization has no effect', async (t) => {
  t.equal(judge({ policies: [] }), notAttached);
  t.equal(judge({ policies: [ours] }), 'nothing');
  const others = secure('others', ['Gateway/main'], { extAuth: otherAuth });
  t.equal(judge({ policies: [others] }), notAttached);
  t.equal(judge({ policies: [secure('ours', ['Gateway/other'], { extAuth })] }), notAttached);
  t.equal(judge({ policies: [], targets: ['Gateway/main'] }), notAttached);
  t.equal(judge({ policies: [], targets: ['Gateway/main/https'] }), notAttached);
});

t.test('a policy of a route or a rule replaces that of the Gateway, unless it is merged', async (t) => {
  const merged = { cors, mergeType: 'StrategicMerge' };
  for (const [target, of] of [
    ['HTTPRoute/orders', 'HTTPRoute shop/orders'],
    ['HTTPRoute/orders/read', 'HTTPRoute shop/orders (read)'],
  ] as const) {
    const bypassed = `${replaces(of)}: ${line}`;
    t.equal(judge({ policies: [ours, secure('cors', [target], { cors })] }), bypassed);
    t.equal(judge({ policies: [ours, secure('cors', [target], merged)] }), 'nothing');
    t.equal(judge({ policies: [ours, secure('cors', [target], { cors, extAuth })] }), 'nothing');
    t.equal(judge({ policies: [secure('cors', [target], merged)] }), notAttached);
  }
  t.equal(judge({ policies: [secure('own', ['HTTPRoute/orders'], { extAuth })] }), 'nothing');
});

t.test('a policy of a rule takes effect without that of its route', async (t) => {
  const ofRoute = secure('cors', ['HTTPRoute/orders'], { cors });
  const ofRule = secure('rule', ['HTTPRoute/orders/read'], { extAuth });
  const targets = ['HTTPRoute/orders/read'];
  t.equal(judge({ policies: [ours, ofRoute, ofRule], targets }), 'nothing');
  t.equal(judge({ policies: [ours, ofRoute, ofRule] }), `${replaces('HTTPRoute shop/orders')}: ${line}`);
});

t.test('a policy of a Gateway is bypassed at a route that has no policy of its own', async (t) => {
  const policies = [ours, secure('cors', ['HTTPRoute/orders'], { cors })];
  const bypassed = `${replaces('HTTPRoute shop/orders')}: ${line}`;
  t.equal(judge({ policies, targets: ['Gateway/main'] }), bypassed);
  t.equal(judge({ policies, targets: ['Gateway/main/http'] }), bypassed);
});

t.test('a policy of a listener replaces that of the Gateway, and cannot be merged', async (t) => {
  const policies = [ours, secure('cors', ['Gateway/main/https'], { cors })];
  const bypassed = `${replaces('Gateway shop/main (https)')}: give it the same extAuth`;
  t.equal(judge({ policies }), bypassed);
  t.equal(judge({ policies, targets: ['Gateway/main/https'] }), bypassed);
  t.equal(judge({ policies, targets: ['Gateway/main/http'] }), 'nothing');
  const merged = secure('merged', ['HTTPRoute/orders'], { cors, mergeType: 'StrategicMerge' });
  t.equal(judge({ policies: [...policies, merged] }), bypassed);
});

t.test('another external authorization is not ours, also when it is merged', async (t) => {
  const merge = { mergeType: 'StrategicMerge' };
  const judgeOther = (spec: object) =>
    judge({ policies: [ours, secure('cors', ['HTTPRoute/orders'], { extAuth: otherAuth, ...spec })] });
  const removed = `${replaces('HTTPRoute shop/orders')} by another: remove its extAuth`;
  t.equal(judgeOther({}), `${removed}, and ${line}`);
  t.equal(judgeOther(merge), removed);
  t.equal(judgeOther({ extAuth: { timeout: '1s' }, ...merge }), 'nothing');
});

t.test('every external authorization counts while no auth servers are named', async (t) => {
  const world = { authServices: [] };
  const others = secure('others', ['Gateway/main'], { extAuth: otherAuth });
  t.equal(judge({ policies: [others], world }), 'nothing');
  t.match(judge({ policies: [], world }), /^NotAttached: .* extAuth with a backend: /);
});

t.test('of several policies of a target, the oldest takes effect', async (t) => {
  const cors1 = secure('cors', ['HTTPRoute/orders'], { cors }, 1);
  const own = (createdMs: number) => secure('own', ['HTTPRoute/orders'], { extAuth }, createdMs);
  t.equal(judge({ policies: [ours, cors1, own(0)] }), 'nothing');
  t.match(judge({ policies: [ours, cors1, own(2)] }), /^Bypassed/);
  // The first by name.
  t.match(judge({ policies: [ours, own(1), cors1] }), /^Bypassed/);
});

t.test('a policy can select its targets by labels', async (t) => {
  const labeled = makeObject('shop/orders', { parentRefs, rules: [{}] });
  const manifest = { ...labeled.manifest, metadata: { labels: { team: 'a' } } };
  const world = { httpRoutes: [{ ...labeled, manifest }] };
  const select = (team: string, createdMs = 0, kind = 'HTTPRoute') =>
    makeObject('shop/cors', { targetSelectors: [{ kind, matchLabels: { team } }], cors }, { createdMs });
  t.match(judge({ policies: [ours, select('a')], world }), /^Bypassed/);
  t.equal(judge({ policies: [ours, select('b')], world }), 'nothing');
  t.equal(judge({ policies: [ours, select('a', 0, 'GRPCRoute')], world }), 'nothing');
  const own = secure('own', ['HTTPRoute/orders'], { extAuth }, 1);
  t.match(judge({ policies: [ours, select('a'), own], world }), /^Bypassed/);
  t.equal(judge({ policies: [ours, select('a', 2), own], world }), 'nothing');
});

t.test('a label that an object gets later counts', async (t) => {
  const { routes, gateways, resolve } = makeTargets({
    ...{ gateways: [gateway], httpRoutes: [orders], gatewayClasses: [gatewayClass] },
    ...{ authServices: [authService] },
    securityPolicies: [
      makeObject('shop/ours', {
        targetSelectors: [{ kind: 'Gateway', matchLabels: { team: 'a' } }],
        extAuth,
      }),
      makeObject('shop/cors', { targetSelectors: [{ kind: 'HTTPRoute', matchLabels: { team: 'a' } }], cors }),
    ],
  });
  const policy = makeTargeted('shop/orders', ['HTTPRoute/orders']);
  const judgeNow = () => resolve(policy).ancestors.get('shop/orders')?.[0]?.unenforced?.reason;
  const label = (object: typeof orders) => ({
    ...{ ...object, resourceVersion: '2' },
    manifest: { ...object.manifest, metadata: { labels: { team: 'a' } } },
  });
  t.equal(judgeNow(), 'NotAttached');
  gateways.set(gateway.id, label(gateway));
  t.equal(judgeNow(), undefined);
  routes.HTTPRoute.set(orders.id, label(orders));
  t.equal(judgeNow(), 'Bypassed');
});

t.test('Gateways of other controllers are not judged, nor are targets without a Gateway', async (t) => {
  const istio = makeObject('/eg', { controllerName: 'istio.io/gateway-controller' });
  t.equal(judge({ policies: [], world: { gatewayClasses: [istio] } }), 'nothing');
  t.equal(judge({ policies: [], world: { gatewayClasses: [] } }), 'nothing');
  t.equal(judge({ policies: [], targets: ['HTTPRoute/missing'] }), 'nothing');
  t.equal(judge({ policies: [], world: { authServices: undefined } }), 'nothing');
});

t.test('the first causes are named, the others counted', async (t) => {
  const names = [1, 2, 3, 4, 5, 6].map((number) => `route${number}`);
  const httpRoutes = names.map((name) => makeObject(`shop/${name}`, { parentRefs, rules: [{}, {}] }));
  const cors = secure(
    'cors',
    names.map((name) => `HTTPRoute/${name}`),
    {},
  );
  const text = judge({ policies: [ours, cors], targets: ['Gateway/main'], world: { httpRoutes } });
  t.match(text, /route1 .*route4 .*; and 2 more$/);
});
