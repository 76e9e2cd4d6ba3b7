import t from 'tap';
import type { HeldObject, HoldStore, SourceOutage, StoredHold } from '../../src/catalog/source.ts';
import { memoryHold } from '../../src/deletions.ts';
import type { PolicyAncestor } from '../../src/policies/policy-result.ts';
import { makePolicy, perUser } from '../support/policies.ts';
import { startPolicies } from '../support/start-policies.ts';

const limited = { hosts: ['a.test'], limits: [perUser] };
const unlimited = { hosts: ['a.test'] };

t.test('auth servers get a policy when limiters have its rules', async (t) => {
  const { replace, settle, published, acknowledge, access } = await startPolicies(t);
  replace();
  await settle();
  acknowledge('limiter');
  acknowledge('auth server');
  replace(makePolicy('shop/a', limited));
  await settle();
  t.same(published, ['rules', 'access', 'rules policy/shop/a']);
  acknowledge('limiter');
  await settle();
  t.same(published, ['rules', 'access', 'rules policy/shop/a', 'access shop']);
  t.same(access(), { 'shop/a': ['a.test'] });
});

t.test('limiters lose rules when no auth server asks for them any more', async (t) => {
  const { replace, settle, published, acknowledge } = await startPolicies(t);
  replace(makePolicy('shop/a', limited));
  await settle();
  acknowledge('limiter');
  acknowledge('auth server');
  replace();
  await settle();
  t.same(published, ['rules policy/shop/a', 'access shop', 'access']);
  acknowledge('auth server');
  await settle();
  t.same(published.slice(3), ['rules']);
});

t.test('limits of a policy that are replaced stay until auth servers have the new ones', async (t) => {
  const { replace, settle, published, acknowledge } = await startPolicies(t);
  replace(makePolicy('shop/a', limited));
  await settle();
  acknowledge('limiter');
  acknowledge('auth server');
  replace(makePolicy('shop/a', { ...limited, limits: [{ ...perUser, by: ['Address'] }] }));
  await settle();
  acknowledge('limiter');
  await settle();
  t.same(published.slice(2), ['rules policy/shop/a', 'access shop'], 'rules of both versions first');
  acknowledge('auth server');
  await settle();
  t.same(published.slice(4), ['rules policy/shop/a']);

  acknowledge('limiter');
  replace(makePolicy('shop/a', { ...limited, limits: [{ ...perUser, by: ['Address'], requests: 5 }] }));
  await settle();
  acknowledge('limiter');
  acknowledge('auth server');
  await settle();
  t.same(published.slice(5), ['rules policy/shop/a', 'access shop'], 'another number is one change');
});

t.test('clients that do not answer, or reject, delay policies for two seconds at most', async (t) => {
  const { replace, settle, acknowledge, access, time, lines } = await startPolicies(t);
  replace();
  await settle();
  acknowledge('limiter');
  replace(makePolicy('shop/a', limited));
  await settle();
  t.same(access(), {});
  time.advance(2_000);
  await settle();
  t.same(access(), { 'shop/a': ['a.test'] });
  t.match(lines.at(-1), { clients: 'limiters', waitedMs: 2_000 });
});

const deletions = { delayMs: 2_000, windowMs: 30_000, domains: 10, share: 0.5, store: memoryHold };
const policies = Array.from({ length: 30 }, (_, i) => makePolicy(`shop/${i}`, { hosts: [`${i}.test`] }));

t.test('deletions of many policies are held back, and those of few take effect after a delay', async (t) => {
  const { replace, settle, access, pipeline, lines, registry } = await startPolicies(t, { deletions });
  const count = () => Object.keys(access() ?? {}).length;
  replace(...policies);
  await settle();
  replace(...policies.slice(1));
  await settle();
  t.equal(count(), 30);
  await settle(2_000);
  t.equal(count(), 29);
  replace(...policies.slice(25));
  await settle();
  await settle(40_000);
  t.equal(count(), 30, 'the one that was deleted shortly before returns');
  const reason = '25 of 30 policies vanished within 30 s';
  t.match(pipeline.state().hold, { reason, objects: 25 });
  t.match(
    lines.find(({ level }) => level === 'error'),
    { reason, command: memoryHold.command },
  );
  t.match(await registry.metrics(), /^tollgate_xds_held_policies 25$/m);
  t.match(pipeline.state().results.get('shop/0'), { heldBack: /^25 of 30 policies vanished/ });
  replace(...policies);
  await settle();
  t.equal(pipeline.state().hold, undefined);
  t.match(pipeline.state().results.get('shop/0'), { heldBack: undefined });
});

t.test('a source that lists no policy any more removes none', async (t) => {
  const { replace, settle, access, pipeline } = await startPolicies(t, { deletions });
  replace(makePolicy('shop/a', limited), makePolicy('shop/invalid', { hosts: ['b.test'], unknownField: 1 }));
  await settle();
  replace();
  await settle();
  await settle(40_000);
  t.same(access(), { 'shop/a': ['a.test'], 'shop/invalid': ['b.test denied'] });
  t.match(pipeline.state().hold, { reason: 'the source lists no policy any more', objects: 2 });
});

t.test('policies of an earlier process that are missing in the first list are held back', async (t) => {
  const { tell, settle, access } = await startPolicies(t, { deletions });
  tell({ type: 'replaced', objects: [], before: policies });
  await settle();
  await settle(40_000);
  t.equal(Object.keys(access() ?? {}).length, 30);
});

t.test('held policies of a store are served, and gone when an operator lets them go', async (t) => {
  const state: { onChange: (stored: StoredHold) => void } = { onChange: () => undefined };
  const puts: (readonly HeldObject[])[] = [];
  const store: HoldStore = {
    ...memoryHold,
    start: async (onChange) => {
      state.onChange = onChange;
    },
    put: (objects) => void puts.push(objects),
  };
  const { replace, settle, access } = await startPolicies(t, { deletions: { ...deletions, store } });
  const held = { id: 'shop/held', uid: '1', generation: 1, createdMs: 0 };
  state.onChange({
    isAllowed: false,
    objects: [
      { ...held, spec: limited },
      { ...held, id: 'shop/invalid', spec: { hosts: ['b.test'], unknownField: 1 } },
    ],
  });
  replace(makePolicy('web/c', unlimited));
  await settle();
  t.same(access(), { 'shop/held': ['a.test'], 'shop/invalid': ['b.test denied'], 'web/c': ['a.test'] });
  state.onChange({ isAllowed: true, objects: [] });
  await settle();
  t.same(access(), { 'web/c': ['a.test'] });
});

t.test('the first set of policies is not empty unless that is allowed', async (t) => {
  const { replace, settle, access, rules, pipeline, lines } = await startPolicies(t, {
    allowEmptyStart: false,
  });
  replace();
  await settle();
  t.equal(access(), undefined);
  t.same(rules(), [], 'limiters get their other rules');
  const reason = 'there are no access policies, and XDS_ALLOW_NO_POLICIES=false';
  t.equal(pipeline.state().notServedReason, reason);
  t.match(lines, [{ reason }]);
  replace(makePolicy('shop/a', unlimited));
  await settle();
  t.same(access(), { 'shop/a': ['a.test'] });
  replace();
  await settle();
  t.same(access(), {});
});

t.test('the first set of policies waits for the CRD', async (t) => {
  const state: { reason: string | undefined } = { reason: 'the cluster has no accesspolicies' };
  const { replace, settle, access, rules, pipeline, tell } = await startPolicies(t, {
    source: { missingReason: () => state.reason },
  });
  replace();
  await settle();
  t.equal(access(), undefined, 'auth servers keep the policies of the time before a CRD was deleted');
  t.same(rules(), [], 'limiters get their other rules');
  t.equal(pipeline.state().notServedReason, state.reason);
  state.reason = undefined;
  await settle(2_000);
  t.same(access(), {});
  state.reason = 'the cluster has no accesspolicies';
  tell({ type: 'changed', object: makePolicy('shop/a', unlimited) });
  await settle();
  t.same(access(), { 'shop/a': ['a.test'] });
});

t.test('the last policies stay with XDS_ALLOW_EMPTY=false', async (t) => {
  const { replace, settle, access, pipeline } = await startPolicies(t, { allowEmpty: false });
  replace(makePolicy('shop/a', unlimited));
  await settle();
  replace();
  await settle();
  t.same(access(), { 'shop/a': ['a.test'] });
  t.match(pipeline.state().notServedReason, /there are no access policies/);
});

t.test('limiters keep the rules of the last policies with XDS_ALLOW_EMPTY=false', async (t) => {
  const { replace, settle, access, rules, acknowledge } = await startPolicies(t, { allowEmpty: false });
  replace(makePolicy('shop/a', limited));
  await settle();
  acknowledge('limiter');
  acknowledge('auth server');
  await settle();
  replace();
  await settle();
  t.same(access(), { 'shop/a': ['a.test'] });
  t.same(rules(), ['policy/shop/a']);
  replace(makePolicy('shop/b', limited));
  await settle();
  acknowledge('limiter');
  await settle();
  acknowledge('auth server');
  await settle();
  t.same(access(), { 'shop/b': ['a.test'] });
  t.same(rules(), ['policy/shop/b']);
});

t.test('nothing is served before limiters get rules', async (t) => {
  const state = { isReady: false };
  const { replace, settle, access, pipeline } = await startPolicies(t, { isReady: () => state.isReady });
  replace(makePolicy('shop/a', limited));
  await settle();
  t.equal(access(), undefined);
  t.equal(pipeline.state().notServedReason, 'limiters have no rules yet, which come first');
});

t.test('nothing is served before all objects were read', async (t) => {
  const state: { reason: string | undefined } = { reason: 'objects have not been read yet' };
  const targets = {
    notSyncedReason: () => state.reason,
    findProblems: () => new Map(),
    *resolve() {
      yield;
      return { routes: new Map(), problems: new Map(), ancestors: new Map() };
    },
  };
  const { replace, settle, access, rules, pipeline, tellTargets } = await startPolicies(t, {
    source: { targets },
  });
  t.equal(pipeline.state().notServedReason, 'access policies have not been read yet');
  replace(makePolicy('shop/a', limited));
  await settle();
  t.equal(access(), undefined);
  t.same(rules(), ['policy/shop/a'], 'limiters wait for rules, which need no objects');
  t.equal(pipeline.state().notServedReason, 'objects have not been read yet');
  state.reason = undefined;
  tellTargets();
  await settle();
  t.same(access(), { 'shop/a': ['a.test'] });
  t.equal(pipeline.state().notServedReason, undefined);
});

t.test('routes that were read while policies were compiled come before these are served', async (t) => {
  const state: { reason: string | undefined } = { reason: 'objects have not been read yet' };
  const targets = {
    notSyncedReason: () => state.reason,
    findProblems: () => new Map(),
    *resolve() {
      yield;
      state.reason = undefined;
      return { routes: new Map(), problems: new Map(), ancestors: new Map() };
    },
  };
  const { replace, settle, access, tellTargets } = await startPolicies(t, { source: { targets } });
  replace(makePolicy('shop/a', unlimited));
  await settle();
  t.equal(access(), undefined);
  tellTargets();
  await settle();
  t.same(access(), { 'shop/a': ['a.test'] });
});

t.test('limiters get other rules when policies cannot be read for lack of a privilege', async (t) => {
  const state: { outages: readonly SourceOutage[] } = { outages: [{ reason: 'unreachable', sinceMs: 0 }] };
  const { settle, rules, access, pipeline, lines } = await startPolicies(t, {
    source: { outages: () => state.outages },
  });
  await settle(60_000);
  t.equal(rules(), undefined, 'an outage ends');
  state.outages = [{ reason: 'not allowed to list', sinceMs: 0, isForbidden: true }];
  await settle(2_000);
  t.equal(rules(), undefined, 'the API server may not have loaded its roles yet');
  state.outages = [{ reason: 'not allowed to list', sinceMs: -5_000, isForbidden: true }];
  await settle(2_000);
  t.same(rules(), []);
  t.equal(access(), undefined, 'auth servers keep their policies');
  t.match(pipeline.state().notServedReason, /^access policies have not been read yet: not allowed to list/);
  t.match(lines, [{ level: 'error', reason: /^not allowed to list/ }]);
});

t.test('policies that a gateway does not enforce are logged and counted', async (t) => {
  const ref = { group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'shop', name: 'main' };
  let ancestors: readonly PolicyAncestor[] = [
    { ref, unenforced: { reason: 'Bypassed', message: 'SecurityPolicy shop/cors replaces ours' } },
    { ref: { ...ref, name: 'other' }, unenforced: { reason: 'Bypassed', message: 'there, too' } },
  ];
  const targets = {
    notSyncedReason: () => undefined,
    findProblems: () => new Map(),
    *resolve() {
      yield;
      return { routes: new Map(), problems: new Map(), ancestors: new Map([['shop/a', ancestors]]) };
    },
  };
  const { replace, settle, lines, registry, tellTargets } = await startPolicies(t, { source: { targets } });
  replace(makePolicy('shop/a', unlimited));
  await settle();
  t.match(lines, [
    {
      ...{ level: 'warn', policy: 'shop/a' },
      warnings: ['Bypassed: SecurityPolicy shop/cors replaces ours', 'Bypassed: there, too'],
    },
  ]);
  t.match(await registry.metrics(), /^tollgate_xds_unenforced_policies\{reason="Bypassed"\} 1$/m);
  t.match(await registry.metrics(), /^tollgate_xds_unenforced_policies\{reason="NotAttached"\} 0$/m);
  ancestors = [{ ref }];
  tellTargets();
  await settle();
  t.match(await registry.metrics(), /^tollgate_xds_unenforced_policies\{reason="Bypassed"\} 0$/m);
  t.match(lines.at(-1), { '@message': 'policy accepted again' });
});

t.test('problems of a policy are logged once', async (t) => {
  const { replace, settle, lines, registry } = await startPolicies(t);
  const invalid = makePolicy('shop/a', { ...unlimited, unknownField: {} });
  for (const object of [invalid, invalid, { ...invalid, manifest: structuredClone(invalid.manifest) }]) {
    replace(object);
    await settle();
  }
  t.match(lines, [
    { level: 'warn', policy: 'shop/a', inForce: /nothing/, problems: [/^Invalid: spec.unknownField/] },
  ]);
  t.match(await registry.metrics(), /^tollgate_xds_policy_problems\{reason="Invalid"\} 1$/m);
  replace(makePolicy('shop/a', unlimited));
  await settle();
  t.match(await registry.metrics(), /^tollgate_xds_policy_problems\{reason="Invalid"\} 0$/m);
  t.match(lines.slice(1), [{ policy: 'shop/a', '@message': 'policy accepted again' }]);
});
