import { compilePolicy } from '@tollgate/policies/compile/compile';
import { readPolicy } from '@tollgate/policies/read/read-policy';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { emitKubernetes } from '../../../cli/src/up/emit.ts';
import { readUpFile } from '../../../cli/src/up/file.ts';
import { renderPolicyCrd } from './access-policy.ts';

const gatewayApi = 'gateway.networking.k8s.io';
const route = { group: gatewayApi, kind: 'HTTPRoute', name: 'orders' };
const gateway = { group: gatewayApi, kind: 'Gateway', name: 'main' };
const hosts = ['api.example.com'];
const perUser = { name: 'per-user', by: ['User'], requests: 60, per: 'Minute' };
const export_ = {
  name: 'export',
  only: true,
  by: ['Organization', { header: 'x-region' }, { claim: 'department' }],
  requests: 10,
  period: '90s',
};
const match = { path: { value: '/orders/export' }, methods: ['GET'] };

const valid = {
  'route with plans': {
    targetRefs: [route],
    limits: [{ ...perUser, plans: { pro: { requests: 600 }, enterprise: { unlimited: true } } }],
  },
  'hosts with access and rules': {
    hosts: [...hosts, '*.shop.example.com'],
    access: { type: 'Authenticated', roles: ['admin'], credentials: ['User', 'ApiKey'] },
    rules: [
      { matches: [match], access: { type: 'Denied' }, limits: [] },
      { matches: [{}], limits: ['export'] },
    ],
    limits: [perUser, export_],
  },
  'gateway with defaults and overrides': {
    targetRefs: [{ ...gateway, sectionName: 'https' }],
    defaults: { access: { type: 'Public' }, limits: [{ ...perUser, by: ['Address'] }] },
    rules: [{ matches: [match], limits: ['per-user'] }],
    overrides: { access: { type: 'Authenticated' }, limits: [{ ...perUser, name: 'most' }] },
  },
};

const badWindow = /limits\[0\]: Invalid value: .*: set requests with either per or period, or only/;
const badPlan = /plans\[pro\]: Invalid value: .*: set either requests or unlimited: true/;

const invalid: Readonly<Record<string, readonly [spec: object, message: RegExp]>> = {
  'no target': [{ limits: [perUser] }, /set exactly one of targetRefs and hosts/],
  'two kinds of targets': [{ hosts, targetRefs: [route] }, /set exactly one of targetRefs and hosts/],
  'unknown kind of target': [
    { targetRefs: [{ ...route, kind: 'TCPRoute' }] },
    /kind: Unsupported value: "TCPRoute"/,
  ],
  'limits of the same name': [{ hosts, limits: [perUser, perUser] }, /Duplicate value: .*per-user/],
  'rule with an unknown limit': [
    { hosts, limits: [perUser], rules: [{ matches: [match], limits: ['per-usr'] }] },
    /limits of a rule must be names of limits of this object/,
  ],
  'limit by nothing': [{ hosts, limits: [{ ...perUser, by: [] }] }, /by: Invalid value: .*at least 1 items/],
  'limit by an unknown attribute': [
    { hosts, limits: [{ ...perUser, by: ['Users'] }] },
    /by\[0\]: Invalid value/,
  ],
  'limit by an object without a name': [
    { hosts, limits: [{ ...perUser, by: [{ head: 'x' }] }] },
    /must validate at least one schema/,
  ],
  'limit without a window': [{ hosts, limits: [{ ...perUser, per: undefined }] }, badWindow],
  'limit with two windows': [{ hosts, limits: [{ ...perUser, period: '90s' }] }, badWindow],
  'limit with a number and without a limit': [
    { hosts, limits: [{ ...perUser, unlimited: true }] },
    badWindow,
  ],
  'plan without a number': [{ hosts, limits: [{ ...perUser, plans: { pro: {} } }] }, badPlan],
  'plan with a number and without a limit': [
    { hosts, limits: [{ ...perUser, plans: { pro: { requests: 6, unlimited: true } } }] },
    badPlan,
  ],
  'overrides of a route': [
    { targetRefs: [route], overrides: { access: { type: 'Denied' } } },
    /defaults and overrides are for policies whose targetRefs are Gateways/,
  ],
  'rules with too many matches': [
    {
      hosts,
      rules: Array.from({ length: 17 }, () => ({ matches: Array.from({ length: 64 }, () => match) })),
    },
    /all rules together have at most 1024 matches/,
  ],
  'host with a port': [{ hosts: ['api.example.com:443'] }, /spec\.hosts\[0\]: Invalid value/],
};

const manifestOf = (spec: object, name = 'orders') => ({
  apiVersion: 'policy.tollgate.dev/v1alpha1',
  kind: 'AccessPolicy',
  metadata: { name, namespace: 'default' },
  spec,
});

kubeSuite(t, 'the CRD of AccessPolicy in an API server', async (t, kube) => {
  await kube.apply(renderPolicyCrd());
  const create = (spec: object, ...args: readonly string[]) =>
    kube.kubectl(['create', ...args, '-f', '-'], { input: JSON.stringify(manifestOf(spec)) });
  const check = (spec: object) => create(spec, '--dry-run=server', '--validate=ignore');

  t.test('its schema is structural and its names are accepted', async (t) => {
    const path = '-o=jsonpath={range .status.conditions[*]}{.type}={.status} {end}';
    const { stdout } = await kube.kubectl(['get', 'crd', 'accesspolicies.policy.tollgate.dev', path]);
    t.notMatch(stdout, /NonStructuralSchema=True/);
    t.match(stdout, /NamesAccepted=True/);
  });

  for (const [name, spec] of Object.entries(valid))
    t.test(`${name} is stored as written`, async (t) => {
      const { stdout, stderr } = await create(spec, '--dry-run=server', '-o=json');
      t.equal(stderr, '');
      // Parsed boundary: of what kubectl prints one field is looked at.
      t.same((JSON.parse(stdout) as { spec: unknown }).spec, spec);
    });

  for (const [name, [spec, message]] of Object.entries(invalid))
    t.test(`${name} is refused by the schema, and by the compiler`, async (t) => {
      t.match((await check(spec)).stderr, message);
      const read = readPolicy(manifestOf(spec), 'test');
      t.notOk(read.ok && compilePolicy(read.resource).ok);
    });

  t.test('what tollgate up writes for Kubernetes is accepted as it is', async (t) => {
    const read = readUpFile(
      `upstream: http://127.0.0.1:3000
access: { roles: [admin, support] }
routes:
  - { path: /public, access: Public, limits: [] }
  - { path: /export, methods: [GET, POST], access: { credentials: [User, ApiKey] }, limits: [per-user] }
limits:
  - { name: per-user, by: [User], requests: 60, per: Minute, plans: { pro: { requests: 600 } } }
  - { name: per-address, by: [Address], requests: 10, period: 90s, algorithm: SlidingWindow }
`,
      'tollgate.yaml',
    );
    if (!read.ok) throw new Error(read.problems.join('\n'));
    const input = emitKubernetes(read.file, { name: 'up', namespace: 'up', hosts: ['a.test', '*.b.test'] });
    const { stdout, stderr } = await kube.kubectl(['apply', '--validate=strict', '-f', '-'], { input });
    t.match(stdout, /^namespace\/up .*\naccesspolicy.*\/up created\n$/, stderr);
  });

  t.test('unknown fields are kept, for the webhook and the xDS server to refuse', async (t) => {
    const { stdout } = await create({ hosts, access: { role: ['admin'] } }, '--dry-run=server', '-o=json');
    const read = readPolicy(JSON.parse(stdout), 'stored');
    t.match(read.ok ? [] : read.problems, [{ field: 'spec.access.role' }]);
  });

  t.test('columns show the status, and the object has short names', async (t) => {
    t.equal((await create(valid['route with plans'])).stderr, '');
    const conditions = [
      {
        ...{ type: 'Ready', status: 'True', reason: 'Enforced', message: '' },
        lastTransitionTime: '2026-01-02T03:04:05Z',
      },
    ];
    const status = { target: 'HTTPRoute/orders', access: 'Authenticated', limits: 'per-user', conditions };
    const patch = JSON.stringify({ status });
    await kube.kubectl(['patch', 'ap', 'orders', '--subresource=status', '--type=merge', '-p', patch]);
    const { stdout } = await kube.kubectl(['get', 'tollgate']);
    const [header = '', row = ''] = stdout.split('\n');
    t.same(header.trim().split(/ {2,}/), ['NAME', 'TARGET', 'ACCESS', 'LIMITS', 'READY', 'AGE']);
    t.match(row.replace(/ +/g, ' '), /^orders HTTPRoute\/orders Authenticated per-user True \S+$/);
  });
});
