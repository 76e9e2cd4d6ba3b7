import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { runSteps } from '@tollgate/kit/time';
import { AccessConfigSchema } from '@tollgate/proto/tollgate/policy/v1/access_config';
import t from 'tap';
import type { CommonSnapshot } from '../../src/catalog/snapshot.ts';
import type { ConfigObject } from '../../src/catalog/source.ts';
import { accessConfigType, PolicyCatalog } from '../../src/policies/policy-catalog.ts';

const limit = { name: 'per-user', by: ['User'], requests: 60, per: 'Minute' };

function policy(id: string, spec: object, createdMs = 0): ConfigObject {
  const [namespace = '', name = ''] = id.split('/');
  const manifest = {
    ...{ apiVersion: 'policy.tollgate.dev/v1alpha1', kind: 'AccessPolicy' },
    ...{ metadata: { namespace, name }, spec },
  };
  return { ...{ id, namespace, name, uid: id, generation: 1, createdMs, order: id }, manifest };
}

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
  const replace = (...objects: readonly ConfigObject[]) => runSteps(catalog.replace(objects));
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
  t.same([...first.rules.resources.keys()], ['policy/shop/orders']);
  t.same(first.problems, []);

  const same = replace(
    policy('web/site', { hosts: ['c.test'] }),
    policy('shop/orders', orders),
    policy('shop/stock', stock),
  );
  t.equal(same.access, first.access, 'the order does not matter');
  t.equal(same.rules, first.rules);
  const fewer = replace(policy('shop/stock', stock));
  t.same(accessOf(fewer), [['shop', [['stock', JSON.stringify(stock), []]]]]);
  t.equal(fewer.rules.resources.size, 0);
});

t.test('an invalid policy keeps its last valid version, and without one its hosts are denied', async (t) => {
  const catalog = new PolicyCatalog();
  const replace = (spec: object) => runSteps(catalog.replace([policy('shop/orders', spec)]));
  const invalid = {
    hosts: ['a.test', 'B', 'API.example.com', 'c.test:8443', 'd.test.', '*.E.test'],
    limits: [{ ...limit, per: undefined }],
  };
  const never = replace(invalid);
  const denied = ['a.test', 'b', 'api.example.com', 'c.test', 'd.test', '*.e.test'];
  t.same(accessOf(never), [['shop', [['orders', '', denied]]]]);
  t.equal(never.rules.resources.size, 0);
  t.match(never.problems, [{ source: 'shop/orders', field: 'spec.hosts[1]', message: /'B' is not allowed/ }]);

  const valid = { hosts: ['a.test'], limits: [limit] };
  const good = replace(valid);
  const edited = replace({ ...valid, limits: [{ ...limit, per: undefined }] });
  t.equal(edited.access, good.access);
  t.equal(edited.rules, good.rules);
  t.match(edited.problems, [{ field: 'spec.limits[0].per', message: 'is required, or period instead' }]);
});

t.test('the newer of two policies for a host is a problem, and so are objects of Gateway API', async (t) => {
  const target = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'a' };
  const { problems } = runSteps(
    new PolicyCatalog().replace([
      policy('a/new', { hosts: ['a.test'] }, 2),
      policy('b/old', { hosts: ['a.test'] }, 1),
      policy('b/route', { targetRefs: [target] }),
    ]),
  );
  t.match(problems, [
    { source: 'b/route', field: 'spec.targetRefs', message: /use hosts/ },
    { source: 'a/new', field: 'spec.hosts', message: 'a.test is a host of b/old, which applies' },
  ]);
});
