import t from 'tap';
import {
  listRules,
  makeNamespace,
  makeObject,
  makeTargeted,
  makeTargets,
} from '../support/gateway-objects.ts';

const http = { name: 'http', protocol: 'HTTP', port: 80 };
const https = { name: 'https', protocol: 'HTTPS', port: 443, hostname: '*.shop.test' };
const gateway = makeObject('shop/main', { listeners: [http, https] });
const toMain = { parentRefs: [{ name: 'main' }] };
const orders = makeObject('shop/orders', {
  ...toMain,
  hostnames: ['a.shop.test'],
  rules: [{ name: 'read' }, {}],
});

t.test('the policy of a rule comes before those of its route, listener and Gateway', (t) => {
  const { resolve } = makeTargets({ gateways: [gateway], httpRoutes: [orders] });
  const ofGateway = makeTargeted('shop/gateway', ['Gateway/main']);
  const ofListener = makeTargeted('shop/listener', ['Gateway/main/https']);
  const ofRoute = makeTargeted('shop/route', ['HTTPRoute/orders']);
  const ofRule = makeTargeted('shop/rule', ['HTTPRoute/orders/read']);
  const both = 'a.shop.test at shop/main:443/https shop/main:80';
  t.same(listRules(resolve()), [`HTTPRoute orders/read: none @ ${both}`, `HTTPRoute orders: none @ ${both}`]);
  t.same(listRules(resolve(ofGateway, ofRoute, ofRule)), [
    'Gateway main/http: shop/gateway @ * at shop/main:80',
    'Gateway main/https: shop/gateway @ *.shop.test at shop/main:443/https',
    `HTTPRoute orders/read: shop/rule @ ${both}`,
    `HTTPRoute orders: shop/route @ ${both}`,
  ]);
  t.same(listRules(resolve(ofListener)), [
    'Gateway main/http: none @ * at shop/main:80',
    'Gateway main/https: shop/listener @ *.shop.test at shop/main:443/https',
    'HTTPRoute orders/read: none @ a.shop.test at shop/main:80',
    'HTTPRoute orders/read: shop/listener @ a.shop.test at shop/main:443/https',
    'HTTPRoute orders: none @ a.shop.test at shop/main:80',
    'HTTPRoute orders: shop/listener @ a.shop.test at shop/main:443/https',
  ]);
  t.end();
});

t.test('overrides of a Gateway and of a listener hold beside the policy of a route', (t) => {
  const { resolve } = makeTargets({ gateways: [gateway], httpRoutes: [orders] });
  const overrides = { access: { type: 'Denied' } } as const;
  const rules = resolve(
    makeTargeted('shop/gateway', ['Gateway/main'], { overrides }),
    makeTargeted('shop/listener', ['Gateway/main/https'], { overrides }),
    makeTargeted('shop/route', ['HTTPRoute/orders']),
  );
  t.same(listRules(rules).slice(2, 4), [
    'HTTPRoute orders/read: shop/route +shop/gateway @ a.shop.test at shop/main:80',
    'HTTPRoute orders/read: shop/route +shop/listener +shop/gateway @ a.shop.test at shop/main:443/https',
  ]);
  t.end();
});

t.test('a policy of a Gateway that was never valid stays an override', (t) => {
  const { resolve } = makeTargets({ gateways: [gateway], httpRoutes: [orders] });
  const invalid = { ...makeTargeted('shop/gateway', ['Gateway/main']), resource: undefined };
  t.match(listRules(resolve(invalid, makeTargeted('shop/route', ['HTTPRoute/orders'])))[2], '+shop/gateway');
  t.end();
});

t.test('a policy for a route that no Gateway accepts has a problem', (t) => {
  const elsewhere = makeObject('shop/elsewhere', { parentRefs: [{ name: 'other' }], rules: [{}] });
  const { resolve } = makeTargets({ gateways: [gateway], httpRoutes: [elsewhere] });
  const { routes, problems } = resolve(makeTargeted('shop/policy', ['HTTPRoute/elsewhere']));
  t.same([...routes], []);
  t.match(problems.get('shop/policy'), [
    { reason: 'TargetNotFound', message: /accepts HTTPRoute elsewhere/ },
  ]);
  t.end();
});

t.test('ancestors are the Gateways of targets, once each, and targets that no Gateway has', (t) => {
  const edge = makeObject('infra/edge', {
    listeners: [{ ...http, allowedRoutes: { namespaces: { from: 'All' } } }],
  });
  const parentRefs = [{ name: 'main' }, { namespace: 'infra', name: 'edge' }];
  const everywhere = makeObject('shop/everywhere', { parentRefs, rules: [{ name: 'read' }] });
  const { resolve } = makeTargets({ gateways: [gateway, edge], httpRoutes: [orders, everywhere] });
  const { ancestors } = resolve(
    makeTargeted('shop/both', ['HTTPRoute/everywhere/read', 'HTTPRoute/orders']),
    makeTargeted('shop/listener', ['Gateway/main/https']),
    makeTargeted('shop/none', ['HTTPRoute/missing']),
  );
  const group = 'gateway.networking.k8s.io';
  const main = { group, kind: 'Gateway', namespace: 'shop', name: 'main' };
  const refs = [...ancestors].map(([policy, found]) => [policy, found.map(({ ref }) => ref)]);
  t.strictSame(Object.fromEntries(refs), {
    'shop/both': [{ ...main, namespace: 'infra', name: 'edge' }, main],
    'shop/listener': [{ ...main, sectionName: 'https' }],
    'shop/none': [{ ...main, kind: 'HTTPRoute', name: 'missing' }],
  });
  t.end();
});

t.test('policies say which others replace them, and whose overrides hold in addition', (t) => {
  const { resolve } = makeTargets({ gateways: [gateway], httpRoutes: [orders] });
  const overrides = { access: { type: 'Denied' } } as const;
  const ofGateway = makeTargeted('shop/gateway', ['Gateway/main'], { overrides });
  const ofListener = makeTargeted('shop/listener', ['Gateway/main/https']);
  const ofRoute = makeTargeted('shop/route', ['HTTPRoute/orders']);
  const ofRule = makeTargeted('shop/rule', ['HTTPRoute/orders/read']);
  const changes = (...policies: ReturnType<typeof makeTargeted>[]) =>
    Object.fromEntries(
      [...resolve(...policies).ancestors].map(([policy, [first]]) => {
        const { replaced, overridden } = first ?? {};
        return [policy, [replaced && `${replaced.reason}: ${replaced.message}`, overridden]];
      }),
    );
  t.strictSame(changes(ofGateway, ofRoute), {
    'shop/gateway': [
      'PartiallyProgrammed: more specific policies replace its access and limits for some requests: AccessPolicy shop/route; its overrides hold there, too',
      undefined,
    ],
    'shop/route': [
      undefined,
      'overrides of AccessPolicy shop/gateway hold in addition, and a request needs the permission of each',
    ],
  });
  t.match(changes(ofListener, ofRoute, ofRule), {
    'shop/listener': [/^Partially.* for some requests: AccessPolicy shop\/route, AccessPolicy shop\/rule$/],
    'shop/route': [/^PartiallyProgrammed: .* for some requests: AccessPolicy shop\/rule$/, undefined],
    'shop/rule': [undefined, undefined],
  });
  const named = makeObject('shop/orders', { ...toMain, rules: [{ name: 'read' }] });
  const { resolve: resolveNamed } = makeTargets({ gateways: [gateway], httpRoutes: [named] });
  t.match(resolveNamed(ofRoute, ofRule).ancestors.get('shop/route'), [
    { replaced: { reason: 'Overridden' } },
  ]);
  t.end();
});

t.test('a policy names a few of the many that replace it', (t) => {
  const names = Array.from({ length: 6 }, (_, index) => `r${index}`);
  const httpRoutes = names.map((name) => makeObject(`shop/${name}`, { ...toMain, rules: [{}] }));
  const { resolve } = makeTargets({ gateways: [gateway], httpRoutes });
  const { ancestors } = resolve(
    makeTargeted('shop/gateway', ['Gateway/main']),
    ...names.map((name) => makeTargeted(`shop/${name}`, [`HTTPRoute/${name}`])),
  );
  t.match(ancestors.get('shop/gateway'), [
    { replaced: { message: /r0, .* AccessPolicy shop\/r3 and others$/ } },
  ]);
  t.end();
});

t.test('of two policies for a target the older one applies, then the first by name', (t) => {
  const { resolve } = makeTargets({ gateways: [gateway], httpRoutes: [orders] });
  const resolution = resolve(
    makeTargeted('shop/a', ['HTTPRoute/orders'], { createdMs: 2 }),
    makeTargeted('shop/b', ['HTTPRoute/orders'], { createdMs: 1 }),
    makeTargeted('shop/c', ['HTTPRoute/orders', 'HTTPRoute/orders/read'], { createdMs: 1 }),
  );
  t.match(listRules(resolution), [/^HTTPRoute orders\/read: shop\/c/, /^HTTPRoute orders: shop\/b/]);
  const message = 'HTTPRoute orders has the older policy shop/b, which applies: delete one of the two';
  t.match(Object.fromEntries(resolution.problems), {
    'shop/a': [{ field: 'spec.targetRefs[0]', reason: 'Conflicted', message }],
    'shop/c': [{ field: 'spec.targetRefs[0]', reason: 'Conflicted', message }],
  });
  t.equal(resolution.problems.get('shop/b'), undefined);
  t.end();
});

t.test('a target that does not exist is named', (t) => {
  const { resolve } = makeTargets({ gateways: [gateway], httpRoutes: [orders] });
  const { problems } = resolve(
    makeTargeted('shop/a', [
      'HTTPRoute/other',
      'HTTPRoute/orders/write',
      'Gateway/main/tls',
      'GRPCRoute/orders',
    ]),
    makeTargeted('bank/b', ['HTTPRoute/orders']),
  );
  t.match(Object.fromEntries(problems), {
    'shop/a': [
      { field: 'spec.targetRefs[0]', message: 'there is no HTTPRoute other in namespace shop' },
      {
        field: 'spec.targetRefs[1].sectionName',
        message: 'HTTPRoute orders has no rule with the line name: write',
      },
      {
        field: 'spec.targetRefs[2].sectionName',
        message: 'Gateway main has no HTTP listener with the line name: tls',
      },
      { field: 'spec.targetRefs[3]', message: 'there is no GRPCRoute orders in namespace shop' },
    ],
    'bank/b': [{ reason: 'TargetNotFound', message: 'there is no HTTPRoute orders in namespace bank' }],
  });
  t.end();
});

t.test('a policy that never was valid is named by the rules of its routes, which are denied', (t) => {
  const { resolve } = makeTargets({ gateways: [gateway], httpRoutes: [orders] });
  const { object } = makeTargeted('shop/a', ['HTTPRoute/orders']);
  t.match(listRules(resolve({ object, resource: undefined })), [/shop\/a/, /shop\/a/]);
  t.end();
});

t.test('a route is attached to listeners that accept its namespace, kind, section and port', (t) => {
  const selector = {
    matchLabels: { team: 'a' },
    matchExpressions: [{ key: 'tier', operator: 'In', values: ['x'] }],
  };
  const listener = (name: string, port: number, allowedRoutes?: object) => ({
    ...http,
    name,
    port,
    allowedRoutes,
  });
  const { resolve } = makeTargets({
    gateways: [
      makeObject('infra/main', {
        listeners: [
          listener('same', 1),
          listener('all', 2, { namespaces: { from: 'All' } }),
          listener('selected', 3, { namespaces: { from: 'Selector', selector } }),
          listener('none', 4, { namespaces: { from: 'None' } }),
          listener('grpc', 5, { namespaces: { from: 'All' }, kinds: [{ kind: 'GRPCRoute' }] }),
          { ...listener('tcp', 6, { namespaces: { from: 'All' } }), protocol: 'TCP' },
        ],
      }),
    ],
    httpRoutes: [
      makeObject('shop/a', { parentRefs: [{ namespace: 'infra', name: 'main' }], rules: [{}] }),
      makeObject('shop/b', {
        parentRefs: [{ namespace: 'infra', name: 'main', sectionName: 'all' }],
        rules: [{}],
      }),
      makeObject('shop/c', { parentRefs: [{ namespace: 'infra', name: 'main', port: 3 }], rules: [{}] }),
      makeObject('shop/d', { parentRefs: [{ name: 'main' }], rules: [{}] }),
      makeObject('bank/e', { parentRefs: [{ namespace: 'infra', name: 'main' }], rules: [{}] }),
    ],
    grpcRoutes: [makeObject('shop/f', { parentRefs: [{ namespace: 'infra', name: 'main' }], rules: [{}] })],
    namespaces: [makeNamespace('shop', { team: 'a', tier: 'x' }), makeNamespace('bank', { team: 'a' })],
  });
  const resolution = resolve();
  t.same(listRules(resolution), [
    'GRPCRoute f: none @ * at infra/main:2 infra/main:3 infra/main:5',
    'HTTPRoute a: none @ * at infra/main:2 infra/main:3',
    'HTTPRoute b: none @ * at infra/main:2',
    'HTTPRoute c: none @ * at infra/main:3',
  ]);
  t.same(listRules(resolution, 'bank'), ['HTTPRoute e: none @ * at infra/main:2']);
  t.end();
});

t.test('only a route that has changed is read again, and lists without a change stay the same', (t) => {
  const other = makeObject('bank/other', { parentRefs: [{ name: 'main', namespace: 'shop' }], rules: [{}] });
  const all = { ...http, allowedRoutes: { namespaces: { from: 'All' } } };
  const world = makeTargets({
    gateways: [makeObject('shop/main', { listeners: [all] })],
    httpRoutes: [orders, other],
  });
  const before = world.resolve();
  world.routes.HTTPRoute.set('shop/orders', { ...orders, generation: 2 });
  const after = world.resolve();
  t.equal(after.routes.get('bank'), before.routes.get('bank'));
  t.not(after.routes.get('shop'), before.routes.get('shop'));
  world.gateways.set('shop/main', makeObject('shop/main', { listeners: [{ ...all, port: 81 }] }));
  world.targets.parentsChanged();
  t.match(listRules(world.resolve(), 'bank'), [/ at shop\/main:81$/]);
  t.end();
});

t.test('policies that come and go have the effect that they have from the start', (t) => {
  const overrides = { access: { type: 'Denied' } } as const;
  const all = [
    makeTargeted('shop/gateway', ['Gateway/main']),
    makeTargeted('shop/listener', ['Gateway/main/https'], { overrides }),
    makeTargeted('shop/route', ['HTTPRoute/orders']),
    makeTargeted('shop/rule', ['HTTPRoute/orders/read']),
    makeTargeted('shop/older', ['HTTPRoute/orders'], { createdMs: -1 }),
    { ...makeTargeted('shop/listener', ['Gateway/main/https']), resource: undefined },
  ];
  const world = { gateways: [gateway], httpRoutes: [orders] };
  const { resolve } = makeTargets(world);
  // 37 is odd, so that each set comes once, and differs from the one before in several policies.
  for (let step = 0; step < 64; step++) {
    const chosen = all.filter((_, index) => ((step * 37) >> index) % 2 === 1);
    const [actual, expected] = [resolve(...chosen), makeTargets(world).resolve(...chosen)];
    t.same(listRules(actual), listRules(expected));
    t.same([...actual.ancestors], [...expected.ancestors]);
  }
  const routes = resolve(...all.slice(0, 3)).routes.get('shop');
  t.equal(resolve(...all.slice(0, 3)).routes.get('shop'), routes, 'nothing has changed');
  t.end();
});
