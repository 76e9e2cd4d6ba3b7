import { create, fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { runSteps } from '@tollgate/kit/time';
import {
  AccessConfigSchema,
  RouteRuleSchema,
  RouteSchema,
} from '@tollgate/proto/tollgate/policy/v1/access_config';
import t from 'tap';
import type { CommonSnapshot } from '../../src/catalog/snapshot.ts';
import type { ConfigObject, SourceEvent } from '../../src/catalog/source.ts';
import { accessConfigType } from '../../src/policies/access-config.ts';
import { PolicyCatalog } from '../../src/policies/policy-catalog.ts';
import type { TargetResolver } from '../../src/policies/policy-source.ts';
import { makeObject, makeTargets } from '../support/gateway-objects.ts';
import { perUser as limit, makePolicy as policy } from '../support/policies.ts';

/** The policies that auth servers get, by namespace. */
function accessOf({ access }: { readonly access: CommonSnapshot }) {
  return [...access.resources].map(([namespace, { any }]) => {
    const { typeUrl, value } = fromBinary(AnySchema, any);
    t.equal(typeUrl, accessConfigType);
    const { name, policies } = fromBinary(AccessConfigSchema, value);
    t.equal(name, namespace);
    return [namespace, policies.map((one) => [one.name, one.spec, one.deniedHosts])];
  });
}

t.test('policies are one resource for each namespace, and limits one domain for each policy', async (t) => {
  const catalog = new PolicyCatalog();
  const replace = (...objects: readonly ConfigObject[]) =>
    runSteps(catalog.apply([{ type: 'replaced', objects }]));
  const orders = { hosts: ['a.test'], limits: [limit] };
  const stock = { hosts: ['b.test'] };
  const first = replace(
    policy('shop/stock', stock),
    policy('shop/orders', orders),
    policy('web/site', { hosts: ['c.test'] }),
  );
  t.same(accessOf(first), [
    [
      'shop',
      [
        ['orders', JSON.stringify(orders), []],
        ['stock', JSON.stringify(stock), []],
      ],
    ],
    ['web', [['site', '{"hosts":["c.test"]}', []]]],
  ]);
  t.same([...first.documents.keys()], ['policy/shop/orders']);
  t.same(
    first.results.map(({ id, problems }) => [id, problems]),
    [
      ['shop/stock', []],
      ['shop/orders', []],
      ['web/site', []],
    ],
  );

  const same = replace(
    policy('web/site', { hosts: ['c.test'] }),
    policy('shop/orders', orders),
    policy('shop/stock', stock),
  );
  t.equal(same.access, first.access, 'the order does not matter');
  t.same(same.documents, first.documents);
  t.same(same.results, [], 'no result differs');
  const fewer = replace(policy('shop/stock', stock));
  t.same(accessOf(fewer), [['shop', [['stock', JSON.stringify(stock), []]]]]);
  t.equal(fewer.documents.size, 0);
  t.same(fewer.deleted, ['shop/orders', 'web/site']);
});

t.test('a policy whose spec is the same is not read again, unless a newer version was stored', async (t) => {
  const catalog = new PolicyCatalog();
  const put = (object: ConfigObject) => runSteps(catalog.apply([{ type: 'changed', object }]));
  const spec = { hosts: ['a.test'] };
  const object = policy('shop/a', spec);
  put(object);
  // Has no kind, so it would be invalid.
  put({ ...object, manifest: { spec }, stored: { generation: 1, readSpec: () => spec } });
  t.same(catalog.results.get('shop/a')?.problems, []);

  const invalid = policy('shop/b', { hosts: [] });
  t.match(put(invalid).results, [{ id: 'shop/b', inForce: undefined }]);
  const stored = { generation: 1, readSpec: () => ({ hosts: ['b.test'] }) };
  t.match(put({ ...invalid, stored }).results, [{ inForce: { spec: { hosts: ['b.test'] } } }]);
});

t.test('events of single policies change only their namespace', async (t) => {
  const catalog = new PolicyCatalog();
  const apply = (...events: readonly SourceEvent[]) => runSteps(catalog.apply(events));
  const objects = [policy('shop/a', { hosts: ['a.test'] }), policy('web/b', { hosts: ['b.test'] })];
  const first = apply({ type: 'replaced', objects });
  const added = apply({ type: 'changed', object: policy('shop/c', { hosts: ['c.test'] }) });
  t.equal(added.access.resources.get('web'), first.access.resources.get('web'));
  t.match(accessOf(added), [['shop', { length: 2 }], ['web']]);
  t.match(added.results, [{ id: 'shop/c', inForce: { generation: 1 } }]);
  const removed = apply({ type: 'deleted', id: 'shop/a' }, { type: 'deleted', id: 'shop/c' });
  t.match(accessOf(removed), [['web']]);
  t.same(removed.deleted, ['shop/a', 'shop/c']);
});

t.test('a policy that was deleted and created again has no earlier version', async (t) => {
  const catalog = new PolicyCatalog();
  const apply = (spec: object, uid: string) =>
    runSteps(catalog.apply([{ type: 'changed', object: policy('shop/a', spec, { uid }) }]));
  apply({ hosts: ['a.test'] }, '1');
  const invalid = { hosts: ['a.test'], unknownField: {} };
  t.match(accessOf(apply(invalid, '1')), [['shop', [['a', '{"hosts":["a.test"]}', []]]]]);
  t.match(accessOf(apply(invalid, '2')), [['shop', [['a', '', ['a.test']]]]]);
});

t.test('a resolver of targets finds routes, and problems of policies with targetRefs', async (t) => {
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'gone' }];
  const finding = { source: 'shop/a', field: 'spec.targetRefs[0]', message: 'does not exist' };
  const rules = [create(RouteRuleSchema, { hosts: ['a.test'], policy: 'shop/a' })];
  const routes = [create(RouteSchema, { kind: 'HTTPRoute', name: 'a', rules })];
  const state = { routes: new Map([['infra', routes]]) };
  const ref = { group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'infra', name: 'main' };
  const resolved: string[] = [];
  const targets: TargetResolver = {
    notSyncedReason: () => undefined,
    findProblems: () => new Map(),
    *resolve(policies) {
      yield;
      resolved.push(...policies.map(({ object, resource }) => `${object.name} ${resource !== undefined}`));
      const problems = new Map([['shop/a', [{ ...finding, reason: 'TargetNotFound' } as const]]]);
      return { ...state, problems, ancestors: new Map([['shop/a', [{ ref }]]]) };
    },
  };
  const catalog = new PolicyCatalog({ targets });
  const apply = (...objects: readonly ConfigObject[]) =>
    runSteps(catalog.apply([{ type: 'replaced', objects }]));
  const first = apply(policy('shop/a', { targetRefs }), policy('shop/b', { targetRefs, unknownField: {} }));
  t.same(resolved, ['a true', 'b false'], 'rules of routes name invalid policies, too');
  t.match(first.results[0], {
    problems: [{ ...finding, reason: 'TargetNotFound' }],
    ancestors: [{ ref }],
    inForce: { generation: 1 },
  });
  t.match(accessOf(first), [
    ['infra', []],
    ['shop', { length: 2 }],
  ]);
  const infra = first.access.resources.get('infra');
  t.match(infra && fromBinary(AccessConfigSchema, fromBinary(AnySchema, infra.any).value), { routes });
  state.routes = new Map();
  t.match(accessOf(apply()), []);
});

t.test('a version for which its namespace has no space is as an invalid one', async (t) => {
  const catalog = new PolicyCatalog({ maxNamespaceBytes: 55 });
  const put = (object: ConfigObject) => runSteps(catalog.apply([{ type: 'changed', object }]));
  const make = (id: string, ...hosts: string[]) => policy(id, { hosts }, { generation: hosts.length });
  put(make('shop/a', 'a.test'));
  put(make('shop/b', 'b.test'));
  put(make('web/c', 'c1.test', 'c2.test', 'c3.test', 'c4.test'));
  const larger = make('shop/b', 'b1.test', 'b2.test', 'b3.test');
  const problems = [{ field: 'spec', message: /shop would have 61 bytes together, and at most 55 are/ }];
  t.match(catalog.preview(larger).problems, problems, 'at admission');
  t.same(catalog.preview(make('shop/b', 'b1.test', 'b2.test')).problems, []);
  t.match(put(larger).results, [{ problems, inForce: { generation: 1 } }]);
  t.match(put(make('shop/d', 'd.test')).results, [{ problems: [{}], inForce: undefined }], 'a third one');
  const { results } = runSteps(catalog.apply([{ type: 'deleted', id: 'shop/a' }]));
  t.match(results, [{ id: 'shop/b', problems: [], inForce: { generation: 3 } }], 'there is space');
});

t.test('targets are resolved again after a change only, and after a run that failed', async (t) => {
  const state = { runs: 0, fails: false };
  const targets: TargetResolver = {
    notSyncedReason: () => undefined,
    findProblems: () => new Map(),
    *resolve() {
      yield;
      state.runs += 1;
      if (state.fails) throw new Error('out of order');
      return { routes: new Map(), problems: new Map(), ancestors: new Map() };
    },
  };
  const catalog = new PolicyCatalog({ targets });
  const object = policy('shop/a', { hosts: ['a.test'] });
  const put = (...objects: readonly ConfigObject[]) =>
    runSteps(catalog.apply(objects.map((one) => ({ type: 'changed', object: one }))));
  const first = put(object);
  const same = put({ ...object, stored: { generation: 1, readSpec: () => undefined } });
  t.equal(state.runs, 1, 'not after the write of a status');
  t.same([same.access, same.documents, same.results], [first.access, first.documents, []]);
  catalog.targetsChanged();
  put();
  put();
  t.equal(state.runs, 2, 'once after a change of targets');
  state.fails = true;
  t.throws(() => put(policy('shop/b', { hosts: ['b.test'] })), /out of order/);
  state.fails = false;
  t.match(accessOf(put()), [['shop', { length: 2 }]], 'the change of the run that failed');
  t.equal(state.runs, 4);

  const run = catalog.apply([{ type: 'changed', object: policy('shop/c', { hosts: ['c.test'] }) }]);
  run.next();
  catalog.targetsChanged();
  runSteps(run);
  put();
  t.equal(state.runs, 6, 'a change during a run');
});

t.test('an invalid policy keeps its last valid version, and without one its hosts are denied', async (t) => {
  const catalog = new PolicyCatalog();
  const replace = (spec: object, generation = 1) =>
    runSteps(catalog.apply([{ type: 'replaced', objects: [policy('shop/orders', spec, { generation })] }]));
  const invalid = {
    hosts: ['a.test', 'B', 'API.example.com', 'c.test:8443', 'd.test.', '*.E.test'],
    limits: [{ ...limit, per: undefined }],
  };
  const never = replace(invalid);
  const denied = ['a.test', 'b', 'api.example.com', 'c.test', 'd.test', '*.e.test'];
  t.same(accessOf(never), [['shop', [['orders', '', denied]]]]);
  t.equal(never.documents.size, 0);
  const problem = { source: 'shop/orders', field: 'spec.hosts[1]', message: /'B' is not allowed/ };
  t.match(never.results, [{ problems: [{ ...problem, reason: 'Invalid' }], inForce: undefined }]);

  const valid = { hosts: ['a.test'], limits: [limit] };
  const good = replace(valid);
  const edited = replace({ ...valid, limits: [{ ...limit, per: undefined }] }, 2);
  t.equal(edited.access, good.access);
  t.same(edited.documents, good.documents);
  const missing = { field: 'spec.limits[0].per', message: 'is required, or period instead' };
  t.match(edited.results, [{ problems: [missing], generation: 2, inForce: { generation: 1, spec: valid } }]);
});

t.test('the newer of two policies for a host is a problem, and so are objects of Gateway API', async (t) => {
  const target = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'a' };
  const objects = [
    policy('a/new', { hosts: ['a.test'] }, { createdMs: 2 }),
    policy('b/old', { hosts: ['a.test'] }, { createdMs: 1 }),
    policy('b/route', { targetRefs: [target] }),
    policy('c/never', { hosts: ['b.test', 'b.test'], unknownField: 1 }, { createdMs: 3 }),
    policy('c/younger', { hosts: ['b.test'] }, { createdMs: 4 }),
  ];
  const { results } = runSteps(new PolicyCatalog().apply([{ type: 'replaced', objects }]));
  const problems = results.flatMap((result) => result.problems);
  const conflict = { field: 'spec.hosts', message: /^a\.test is a host of the older policy b\/old/ };
  t.match(problems, [
    { source: 'a/new', ...conflict, reason: 'Conflicted' },
    { source: 'b/route', field: 'spec.targetRefs', message: /use hosts/, reason: 'Invalid' },
    ...problems.slice(2, -1),
    { source: 'c/younger', message: /^b\.test .* c\/never, which denies it/, reason: 'Conflicted' },
  ]);
  t.equal(
    problems.filter(({ source }) => source === 'c/never').every(({ reason }) => reason === 'Invalid'),
    true,
  );
});

t.test('a preview warns of hosts and targets on which a policy would have no effect', async (t) => {
  const { targets } = makeTargets({
    gateways: [
      makeObject('shop/main', {
        listeners: [{ name: 'http', protocol: 'HTTP', port: 80, hostname: 'a.test' }],
      }),
    ],
    httpRoutes: [
      makeObject('shop/orders', { parentRefs: [{ name: 'main' }], rules: [{}] }),
      makeObject('shop/unattached', { parentRefs: [{ name: 'other' }], rules: [{}] }),
    ],
  });
  const catalog = new PolicyCatalog({ targets, allowedHosts: () => ['a.test', 'b.test'] });
  const refs = (...names: readonly string[]) =>
    names.map((name) => ({ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name }));
  const old = policy('shop/old', { hosts: ['b.test'] });
  const older = policy('shop/older', { targetRefs: refs('orders') });
  runSteps(catalog.apply([{ type: 'replaced', objects: [old, older] }]));
  const warnings = (spec: object, id = 'shop/new') => {
    const { problems, warnings } = catalog.preview(policy(id, spec, { createdMs: 1 }));
    t.same(problems, []);
    return warnings.map(({ field, message, reason }) => [reason, field, message]);
  };
  t.same(warnings({ hosts: ['a.test'] }), []);
  t.same(warnings({ hosts: ['b.test'] }, 'shop/old'), [], 'the object before the change does not count');
  t.match(warnings({ hosts: ['a.test', 'b.test', 'c.test'], limits: [limit] }), [
    ['HostNotAllowed', 'spec.hosts', /^not allowed for the namespace shop, .* on c\.test: /],
    ['Conflicted', 'spec.hosts', /^b\.test is a host of the older policy shop\/old, which applies/],
    ['LimitsDoNotCoverAll', 'spec.limits', /machine clients/],
  ]);
  t.match(warnings({ targetRefs: refs('orders', 'unattached', 'missing') }), [
    ['Conflicted', 'spec.targetRefs[0]', /^HTTPRoute orders has the older policy shop\/older, which applies/],
    ['TargetNotFound', 'spec.targetRefs[1]', /^no listener accepts HTTPRoute unattached/],
    ['TargetNotFound', 'spec.targetRefs[2]', /^there is no HTTPRoute missing in namespace shop/],
  ]);
  t.match(catalog.preview(policy('shop/new', { hosts: ['c.test'], unknownField: 1 })), {
    problems: [{ field: 'spec.unknownField' }],
    warnings: [],
  });
  t.same([...catalog.ids], ['shop/old', 'shop/older'], 'nothing changes');
});
