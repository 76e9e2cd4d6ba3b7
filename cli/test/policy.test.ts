import { join } from 'node:path';
import t from 'tap';
import { cli } from './helpers/tollgate.ts';

const policy = `apiVersion: policy.tollgate.dev/v1alpha1
kind: AccessPolicy
metadata: { name: orders, namespace: shop }
spec:
  hosts: [api.example.com]
  access: { roles: [admin, support] }
  rules:
    - matches: [{ path: { value: /export }, methods: [GET] }]
      access: { roles: [auditor] }
      limits: [export]
  limits:
    - { name: per-user, by: [User], requests: 60, per: Minute, plans: { pro: { requests: 600 } } }
    - { name: export, only: true, by: [User, Organization], requests: 10, per: Hour }
`;

const config = `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: shop, namespace: shop }
spec:
  domain: shop
  descriptors: [{ key: user, rateLimit: { unit: Minute, requestsPerUnit: 5 } }]
`;

const rules =
  'domain: legacy\ndescriptors:\n  - { key: user, rate_limit: { unit: hour, requests_per_unit: 2 } }\n';

const routes = 'routes:\n  - { path: /healthz, access: public, limit: [] }\nlimit: [[user_id]]\n';

t.test('policy check recognises each kind of file by its content', async (t) => {
  const folder = t.testdir({
    'policy.yaml': policy,
    'config.yaml': config,
    'rules.yaml': rules,
    'routes.yaml': routes,
    'deployment.yaml': 'apiVersion: apps/v1\nkind: Deployment\n',
  });
  const tollgate = cli(t);
  const checked = await tollgate('policy', 'check', folder);
  t.equal(checked.exitCode, 0, checked.errors);
  t.match(
    checked.output,
    /^ok: 1 RateLimitConfig, 1 AccessPolicy, 1 routes file, 1 file of limiter rules, 5 limits$/m,
  );
  t.match(checked.output, /policy\.yaml:11:3: warning: spec\.limits: no limit counts /);
  const named = await tollgate('policy', 'check', join(folder, 'deployment.yaml'));
  t.match(named, { exitCode: 3, output: /the content is a manifest of the kind Deployment: expected an / });
  t.match(await tollgate('policy', 'check', join(folder, 'missing')), {
    exitCode: 2,
    errors: /missing cannot be read: there is no such file or folder/,
  });
});

t.test('policy check names the file, line and field of each problem, and a remedy', async (t) => {
  const folder = t.testdir({
    'policy.yaml': policy.replace('per: Minute, plans', 'per: Weekly, plan'),
    'other.yaml': policy.replace('name: orders', 'name: other'),
    'third.yaml': policy.replace('name: orders', 'name: third'),
    'config.yaml': `${config}---\n${config}`,
    'rules.yaml': rules.replace('hour', 'fortnight'),
    'routes.yaml': 'routes:\n  - { path: /a, access: open }\n',
    'text.yaml': 'a: [\n',
  });
  const tollgate = cli(t);
  const { exitCode, output } = await tollgate('policy', 'check', folder);
  t.equal(exitCode, 3);
  const file = (name: string) => join(folder, name).replaceAll('.', '\\.');
  for (const expected of [
    `${file('policy.yaml')}:12:51: spec\\.limits\\[0\\]\\.per: must be one of Second, .* not 'Weekly'`,
    `${file('policy.yaml')}:12:\\d+: spec\\.limits\\[0\\]\\.plan: unknown field \\(did you mean plans\\?\\)`,
    `${file('third.yaml')}:5:11: spec\\.hosts\\[0\\]: the host api.example.com is also in ${file('other.yaml')}:5 `,
    `${file('config.yaml')}:\\d+:\\d+: .*duplicate domain 'shop' .*${file('config.yaml')}`,
    `${file('rules.yaml')}:3:\\d+: invalid rate limit unit`,
    `${file('routes.yaml')}:2:\\d+: expected one of public, authenticated, deny`,
    `${file('text.yaml')}:\\d+:\\d+: `,
  ])
    t.match(output, new RegExp(`^${expected}`, 'm'));
  const stdin = cli(t, {}, policy.replace('[auditor]', 'auditor'));
  const json = await stdin('policy', 'check', '-', '--json');
  t.equal(json.exitCode, 3);
  t.match(JSON.parse(json.output), {
    ok: false,
    findings: [{ severity: 'problem', file: '<stdin>', line: 9, field: 'spec.rules[0].access.roles' }],
  });
});

t.test('policy convert writes an AccessPolicy that passes the check', async (t) => {
  const tollgate = cli(t, {}, routes);
  const target = ['--name', 'orders', '--namespace', 'shop', '--hosts', 'api.example.com', '*.example.com'];
  const { exitCode, output } = await tollgate('policy', 'convert', '-', ...target);
  t.match(output, /^kind: AccessPolicy\nmetadata: \{ name: orders, namespace: shop \}$/m);
  t.equal(exitCode, 0);
  t.match(await cli(t, {}, output)('policy', 'check', '-'), { exitCode: 0 });
  t.match(await cli(t, {}, policy)('policy', 'convert', '-'), { exitCode: 2, errors: /no routes file/ });
});

t.test('policy diff says what is added, removed, stricter and looser', async (t) => {
  const changed = policy
    .replace('[admin, support]', '[admin]')
    .replace('requests: 60,', 'requests: 30,')
    .replace('requests: 600', 'requests: 900')
    .replace(
      / {4}- matches(.|\n)*?\[export\]\n/,
      '    - matches: [{ path: { value: /health } }]\n      access: { type: Public }\n',
    )
    .replace(/ {4}- \{ name: export.*\n/, '');
  const folder = t.testdir({ 'old.yaml': policy, 'new.yaml': changed, 'config.yaml': config });
  const tollgate = cli(t);
  const diff = await tollgate('policy', 'diff', join(folder, 'old.yaml'), join(folder, 'new.yaml'));
  t.equal(diff.exitCode, 0);
  for (const line of [
    'shop/orders',
    '  ~ default, roles: admin, support → admin  stricter',
    '  ~ limit per-user, requests: 60 per minute → 30 per minute  stricter',
    '  ~ limit per-user, plan pro: 600 per minute → 900 per minute  looser',
    '  + rule /health: access Public; limits per-user  looser',
  ])
    t.ok(diff.output.split('\n').includes(line), line);
  t.match(diff.output, /^ {2}- rule GET \/export: access Authenticated; roles auditor; limits export$/m);
  t.match(diff.output, /^ {2}- limit export: requests 10 per hour; .* looser$/m);
  const files = [join(folder, 'old.yaml'), join(folder, 'new.yaml')];
  t.match(await tollgate('policy', 'diff', ...files, '--fail-on-looser'), { exitCode: 3 });
  t.match(await tollgate('policy', 'diff', join(folder, 'old.yaml'), join(folder, 'old.yaml')), {
    exitCode: 0,
    errors: /mean the same/,
  });
  const [one] = JSON.parse((await tollgate('policy', 'diff', ...files, '--json')).output);
  t.match(one, { subject: 'shop/orders', name: 'roles', effect: 'stricter', before: 'admin, support' });
  const stricter = cli(t, {}, config.replace('requestsPerUnit: 5', 'requestsPerUnit: 3'));
  t.match(await stricter('policy', 'diff', join(folder, 'config.yaml'), '-'), {
    output: 'domain shop\n  ~ limit shop.user, requests: 5 per minute → 3 per minute  stricter\n',
  });
});
