import { runSteps } from '@tollgate/kit/time';
import t from 'tap';
import type { ConfigObject } from '../../src/catalog/source.ts';
import { isHostAllowed, parseHostsByNamespace, readAllowedHosts } from '../../src/policies/allowed-hosts.ts';
import { PolicyCatalog } from '../../src/policies/policy-catalog.ts';
import { makePolicy } from '../support/policies.ts';
import { startPolicies } from '../support/start-policies.ts';

t.test('a wildcard covers its subdomains and their wildcards', async (t) => {
  const allowed = ['api.example.com', '*.shop.example.com'];
  for (const host of [
    'api.example.com',
    'a.shop.example.com',
    'a.b.shop.example.com',
    '*.shop.example.com',
    '*.b.shop.example.com',
  ])
    t.equal(isHostAllowed(host, allowed), true, host);
  for (const host of [
    'shop.example.com',
    'workshop.example.com',
    '*.example.com',
    '*',
    'other-api.example.com',
    '*.api.example.com',
  ])
    t.equal(isHostAllowed(host, allowed), false, host);
  t.equal(isHostAllowed('*', ['*']), true);
  t.equal(isHostAllowed('a.test', []), false);
});

t.test('hosts of an annotation and of the setting are parsed, and mistakes named', async (t) => {
  const read = (text: string) =>
    readAllowedHosts({ metadata: { annotations: { 'policy.tollgate.dev/allowed-hosts': text } } });
  t.same(read(' a.test, *.b.test\n* '), { hosts: ['a.test', '*.b.test', '*'], invalid: [] });
  t.same(
    read('a.test, http://b.test c.test **'),
    { hosts: ['a.test', 'c.test'], invalid: ['http://b.test', '**'] },
    'the others stay allowed',
  );
  t.same(readAllowedHosts({ metadata: {} }), { hosts: [], invalid: [] });
  const parsed = parseHostsByNamespace(['shop=a.test', '*.b.test', 'web=c.test', 'shop=d.test']);
  t.equal(parsed.ok, true);
  t.same(parsed.ok && [...parsed.value], [
    ['shop', ['a.test', '*.b.test', 'd.test']],
    ['web', ['c.test']],
  ]);
  for (const invalid of ['a.test', 'shop=A.test', 'Shop=a.test', 'shop=', '=a.test', 'shop=a.test=b.test'])
    t.same(parseHostsByNamespace([invalid]), { ok: false, invalid });
});

t.test('a policy has no effect on hosts that its namespace may not have', async (t) => {
  const allowed: Record<string, readonly string[]> = { shop: ['*.shop.test'], web: [] };
  const { replace, settle, access, pipeline, tellTargets } = await startPolicies(t, {
    allowedHosts: (namespace) => allowed[namespace],
  });
  replace(
    makePolicy('shop/a', { hosts: ['a.shop.test', 'b.test'], access: { type: 'Public' } }),
    makePolicy('shop/all', { hosts: ['*'] }),
    makePolicy('shop/invalid', { hosts: ['c.test', 'd.shop.test'], unknownField: 1 }),
    makePolicy('web/b', { hosts: ['b.test'] }),
    makePolicy('free/e', { hosts: ['e.test'] }),
  );
  await settle();
  const expected = {
    'shop/a': ['a.shop.test'],
    'shop/invalid': ['d.shop.test denied'],
    'free/e': ['e.test'],
  };
  t.same(access(), expected);
  const problems = (id: string) => pipeline.state().results.get(id)?.problems;
  const message =
    'not allowed for the namespace shop, so the policy has no effect on b.test: add them to the annotation policy.tollgate.dev/allowed-hosts of Namespace shop, or to XDS_ALLOWED_HOSTS';
  t.match(problems('shop/a'), [{ reason: 'HostNotAllowed', field: 'spec.hosts', message }]);
  t.match(problems('shop/invalid'), [
    { reason: 'Invalid' },
    { reason: 'HostNotAllowed', message: / c\.test: / },
  ]);
  t.match(problems('web/b'), [{ reason: 'HostNotAllowed' }]);

  allowed.web = ['b.test'];
  tellTargets();
  await settle();
  t.same(access(), { ...expected, 'web/b': ['b.test'] });
  t.same(problems('web/b'), []);
});

t.test('a policy cannot take the host of another team by being older', async (t) => {
  const hosts: Record<string, readonly string[]> = { shop: ['a.test'], evil: ['evil.test'] };
  const catalog = new PolicyCatalog({ allowedHosts: (namespace) => hosts[namespace] });
  const objects: readonly ConfigObject[] = [
    makePolicy('evil/a', { hosts: ['a.test'], access: { type: 'Public' } }, { createdMs: 1 }),
    makePolicy('shop/a', { hosts: ['a.test'] }, { createdMs: 2 }),
  ];
  const { results, access } = runSteps(catalog.apply([{ type: 'replaced', objects }]));
  t.match(results, [
    { name: 'a', namespace: 'evil', problems: [{ reason: 'HostNotAllowed' }] },
    { namespace: 'shop', problems: [] },
  ]);
  t.same([...access.resources.keys()], ['evil', 'shop']);
});

t.test('a host that is no longer allowed is denied until another policy names it', async (t) => {
  const allowed: Record<string, readonly string[]> = { shop: ['a.test', 'b.test'], web: [] };
  const { replace, settle, access, pipeline, tellTargets } = await startPolicies(t, {
    allowedHosts: (namespace) => allowed[namespace],
  });
  const ofShop = makePolicy('shop/a', { hosts: ['a.test', 'b.test'] });
  const never = makePolicy('shop/never', { hosts: ['a.test', 'c.test'], unknownField: 1 });
  const ofWeb = makePolicy('web/b', { hosts: ['b.test', 'c.test'] });
  replace(ofShop, never, ofWeb);
  await settle();
  t.same(access(), { 'shop/a': ['a.test', 'b.test'], 'shop/never': ['a.test denied'] });

  allowed.shop = ['b.test'];
  tellTargets();
  await settle();
  const lost = { 'shop/a': ['a.test denied', 'b.test'], 'shop/never': ['a.test denied'] };
  t.same(access(), lost, 'a missing permission may be a mistake');
  t.match(pipeline.state().results.get('shop/a')?.problems, [
    {
      reason: 'HostNotAllowed',
      message: /^no longer allowed for the namespace shop, so all requests are denied of a\.test: add them/,
    },
  ]);

  allowed.web = ['a.test', 'b.test'];
  allowed.shop = [];
  tellTargets();
  await settle();
  t.same(access(), { ...lost, 'shop/a': ['a.test denied'], 'web/b': ['b.test'] }, 'its new owner has it');
  replace(ofShop, ofWeb, makePolicy('web/a', { hosts: ['a.test'] }));
  await settle();
  t.same(access(), { 'web/a': ['a.test'], 'web/b': ['b.test'] });
  replace(makePolicy('shop/a', { hosts: ['b.test'] }, { generation: 2 }), ofWeb);
  await settle();
  replace(makePolicy('shop/a', { hosts: ['a.test'] }, { generation: 3 }), ofWeb);
  await settle();
  t.same(access(), { 'web/b': ['b.test'] }, 'a host that the policy gave up must be allowed again');
});

t.test('a policy that another process has seen allowed denies its host after a restart', (t) => {
  const spec = { hosts: ['a.test'] };
  const before = makePolicy('shop/a', spec, { allowedHosts: ['a.test', 'gone.test'] });
  const catalog = new PolicyCatalog({ allowedHosts: () => [] });
  const { results } = runSteps(catalog.apply([{ type: 'replaced', objects: [before] }]));
  t.match(results, [{ allowedHosts: ['a.test'], problems: [{ message: /^no longer allowed/ }] }]);
  t.end();
});
