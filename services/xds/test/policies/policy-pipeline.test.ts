import t from 'tap';
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
    *resolve() {
      yield;
      return { routes: new Map(), problems: new Map() };
    },
  };
  const { replace, settle, access, pipeline, tellTargets } = await startPolicies(t, { source: { targets } });
  t.equal(pipeline.state().notServedReason, 'policies have not been read yet');
  replace(makePolicy('shop/a', unlimited));
  await settle();
  t.equal(access(), undefined);
  t.equal(pipeline.state().notServedReason, 'objects have not been read yet');
  state.reason = undefined;
  tellTargets();
  await settle();
  t.same(access(), { 'shop/a': ['a.test'] });
  t.equal(pipeline.state().notServedReason, undefined);
});

t.test('problems of a policy are logged once', async (t) => {
  const { replace, settle, lines } = await startPolicies(t);
  const invalid = makePolicy('shop/a', { ...unlimited, unknownField: {} });
  for (const object of [invalid, invalid, { ...invalid, manifest: structuredClone(invalid.manifest) }]) {
    replace(object);
    await settle();
  }
  t.match(lines, [
    { level: 'warn', policy: 'shop/a', inForce: /nothing/, problems: [/^Invalid: spec.unknownField/] },
  ]);
  replace(makePolicy('shop/a', unlimited));
  await settle();
  t.match(lines.slice(1), [{ policy: 'shop/a', '@message': 'policy accepted again' }]);
});
