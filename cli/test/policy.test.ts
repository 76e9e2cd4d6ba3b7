import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { startApp } from '../../services/xds/test/support/start-app.ts';
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
  const forged = cli(t, {}, rules.replace('key: user', 'key: "user\\e[2J"'));
  t.match(await forged('policy', 'diff', join(folder, 'config.yaml'), '-'), {
    output: /\+ all: limit legacy\.user\\u\{1b\}\[2J, requests 2 per hour/,
  });
  const stricter = cli(t, {}, config.replace('requestsPerUnit: 5', 'requestsPerUnit: 3'));
  t.match(await stricter('policy', 'diff', join(folder, 'config.yaml'), '-'), {
    output: 'domain shop\n  ~ limit shop.user, requests: 5 per minute → 3 per minute  stricter\n',
  });
});

const limitsWithTrial = `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: web, namespace: shop }
spec: { domain: web, descriptors: [{ key: user, rateLimit: { unit: Hour, requestsPerUnit: 3 } }] }
---
apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: web-trial, namespace: shop }
spec: { domain: web, trial: true, descriptors: [{ key: user, rateLimit: { unit: Hour, requestsPerUnit: 2 } }] }
`;

t.test('policy diff compares one file with the versions in force', async (t) => {
  const folder = t.testdir({
    live: { 'policy.yaml': policy, 'limits.yaml': limitsWithTrial },
    'new.yaml': policy.replace('60,', '90,'),
  });
  const app = await startApp(t, { XDS_FOLDER: join(folder, 'live') });
  const env = { TOLLGATE_XDS_URL: `http://127.0.0.1:${app.ports.admin}` };
  const tollgate = cli(t, env);
  const diff = () => tollgate('policy', 'diff', join(folder, 'new.yaml'));
  const expected = 'shop/orders\n  ~ limit per-user, requests: 60 per minute → 90 per minute  looser\n';
  await awaitUntil(async () => (await diff()).output === expected, { what: 'the policy' });
  await writeFile(join(folder, 'live', 'policy.yaml'), policy.replace('60, per: Minute', '70, per: Weekly'));
  const refused = `http://127.0.0.1:${app.ports.admin}/v1/objects?accepted=false`;
  const isRefused = async () => /"total": ?1/.test(await (await fetch(refused)).text());
  await awaitUntil(isRefused, { what: 'the refused version' });
  t.equal((await diff()).output, expected, 'the last valid version is in force');
  const promoted = await tollgate('limits', 'trial', 'promote', 'web');
  t.match(promoted, {
    exitCode: 0,
    output: /^apiVersion: [\s\S]* name: web\n[\s\S]*requestsPerUnit: 2\n/,
    errors: 'then delete the object on trial: kubectl delete ratelimitconfig -n shop web-trial\n',
  });
  t.notMatch(promoted.output, 'trial');
  const files = await tollgate(
    'limits',
    'trial',
    'promote',
    'web',
    '--files',
    join(folder, 'live'),
    '--json',
  );
  t.match(JSON.parse(files.output), {
    manifests: [{ metadata: { name: 'web' } }],
    removed: [{ kind: 'RateLimitConfig', namespace: 'shop', name: 'web-trial' }],
  });
  const otherForm = limitsWithTrial.replace(
    'trial: true, descriptors: [{ key: user, ',
    'trial: true, limits: [{ name: user, match: [{ key: user }], ',
  );
  await writeFile(join(folder, 'other-form.yaml'), otherForm);
  const fromFile = ['--files', join(folder, 'other-form.yaml')];
  t.match(await tollgate('limits', 'trial', 'promote', 'web', ...fromFile), {
    ...{ exitCode: 2, output: '' },
    errors:
      /^RateLimitConfig shop\/web-trial cannot be put into force: the trial has limits, and .* in the same form/,
  });
  t.match(await tollgate('limits', 'trial', 'promote', 'policy/shop/orders'), {
    exitCode: 2,
    errors: /^no object with the domain policy\/shop\/orders is on trial/,
  });
  const added = cli(t, env, policy.replace('name: orders', 'name: added').replace('api.', 'b.'));
  t.match(await added('policy', 'diff', '-'), { output: /^shop\/added\n {2}\+ all: / });
  t.match(await cli(t)('policy', 'diff', join(folder, 'new.yaml')), {
    exitCode: 2,
    errors: /the context has no xDS server: run tollgate context set default --xds-url/,
  });
});

t.test('with tests of policies', async (t) => {
  const page = await readFile('docs/policy-tests.md', 'utf8');
  const blocks = [...page.matchAll(/^`(\S+\.yaml)`:\n\n```yaml\n([^`]*)```/gm)];
  const files = Object.fromEntries(blocks.map(([, name = '', text = '']) => [name, text]));
  const { 'orders.test.yaml': tests = '' } = files;

  t.test('the example of the page passes, and its failure names the line that decided', async (t) => {
    const failing = tests
      .replace(/ {2}- name: a user has(.|\n)*?\n\n/, '')
      .replace('    as: auditor\n', '    as: ann\n');
    const folder = t.testdir({ ...files, 'failing.test.yaml': failing });
    const tollgate = cli(t);
    const shown = (start: string): string =>
      new RegExp(`^${start}[^\`]*`, 'm').exec(page)?.[0].replace(/^\$.*\n/, '') ?? '';
    t.match(await tollgate('policy', 'test', join(folder, 'orders.test.yaml')), {
      exitCode: 0,
      output: shown('\\$ tollgate policy test orders'),
    });
    const failed = await tollgate('policy', 'test', join(folder, 'failing.test.yaml'));
    t.equal(failed.exitCode, 3);
    // Lines of the failing file are others than those of the page.
    const normalize = (text: string) =>
      text.replaceAll(`${folder}/`, '').replace(/\w+\.test\.yaml:\d+|line \d+/g, '');
    t.match(normalize(failed.output), normalize(shown('FAILED')));
    t.match(await tollgate('policy', 'test', folder, '--json'), { exitCode: 3, output: /"passed": 4/ });
  });

  t.test('the examples of the shop pass', async (t) => {
    t.match(await cli(t)('policy', 'test', 'examples'), { exitCode: 0, output: /^5 passed, 0 failed$/m });
  });

  t.test('mistakes in a file of tests have a line and a suggestion', async (t) => {
    const wrong = tests
      .replace('as: ann', 'as: anna')
      .replace('times: 60', 'time: 60')
      .replace('status: 401', 'status: denied');
    const folder = t.testdir({
      ...files,
      'form.test.yaml': wrong,
      'name.test.yaml': tests.replace('as: ann', 'as: anna'),
    });
    const tollgate = cli(t);
    const form = await tollgate('policy', 'check', join(folder, 'form.test.yaml'));
    t.match(form, {
      exitCode: 3,
      output: /:18:\d+: tests\[1\]\.steps\[0\]\.time: unknown field \(did you mean times\?\)/,
    });
    t.match(form.output, /:12:\d+: tests\[0\]\.expect\.status: must be integer/);
    t.match(await tollgate('policy', 'test', join(folder, 'name.test.yaml')), {
      exitCode: 3,
      output: /:15:5: tests\[1\]\.as: no caller is named anna: callers has ann, pro, /,
    });
    t.match(await tollgate('policy', 'test', join(folder, 'policy.yaml')), {
      exitCode: 3,
      output: /the file has no tests: expected `tests`, and `policies`/,
    });
  });

  t.test('the tests run again when a policy changes', async (t) => {
    const folder = t.testdir(files);
    const stop = new AbortController();
    const lines: string[] = [];
    const running = cli(t, {}, '', { signal: stop.signal, onOutput: (text) => void lines.push(text) })(
      ...(['policy', 'test', folder, '--watch'] as const),
    );
    await awaitUntil(() => lines.some((line) => line.startsWith('Waiting')), { what: 'first run' });
    t.ok(lines.includes('3 passed, 0 failed\n'));
    await writeFile(
      join(folder, 'policy.yaml'),
      (files['policy.yaml'] ?? '').replace('[auditor]', '[admin]'),
    );
    await awaitUntil(() => lines.includes('2 passed, 1 failed\n'), { what: 'second run' });
    stop.abort();
    t.match(await running, { exitCode: 0 });
  });
});

t.test('policies, limits and routes files decide as the services do', async (t) => {
  const folder = t.testdir({
    'routes.yaml': `${routes}limit_domain: legacy\nclaims: { department: app_metadata.department }\n`,
    'limits.yaml':
      'domain: legacy\ndescriptors: [{ key: user_id, rate_limit: { unit: minute, requests_per_unit: 2 } }]\n',
    'policy.yaml': policy
      .replace('access: { roles: [admin, support] }', 'access: { scopes: [orders.read], assurance: AAL2 }')
      .replace('requests: 60', 'algorithm: TokenBucket, burst: 5, requests: 60')
      .replace('by: [User, Organization]', 'by: [{ header: x-region }], mode: Shadow'),
    'all.test.yaml': `policies: [.]
callers:
  weak: { user: ann, scopes: [orders.read] }
  strong: { user: ann, scopes: [orders.read, other], assurance: AAL2 }
  own: { user: eve, scopes: [orders.read], assurance: AAL2, limit: { requests: 3, per: Hour } }
  auditor: { user: zoe, role: auditor }
  guest: { user: guest, anonymous: true }
tests:
  - name: conditions
    steps:
      - { as: weak, request: GET https://api.example.com/, expect: { status: 401, reason: insufficient_aal } }
      - { as: auditor, request: GET https://api.example.com/, expect: { reason: insufficient_aal } }
      - { as: guest, request: GET https://api.example.com/export, expect: { reason: role_not_allowed } }
      - { as: strong, request: GET https://api.example.com/a%2fb, expect: { status: 400, reason: path_not_canonical } }
      - { as: strong, request: get https://api.example.com/, expect: { reason: method_not_upper_case } }
      - { as: strong, request: POST https://api.example.com/export, expect: { allowed: true, rule: default } }
  - name: bursts refill with time
    as: strong
    steps:
      - { request: GET https://api.example.com/, times: 5, expect: { allowed: true, remaining: 0 } }
      - { request: GET https://api.example.com/, expect: { status: 429 } }
      - { request: GET https://api.example.com/, after: 2s, times: 2, expect: { allowed: true } }
      - { at: 2026-01-01T01:00:00Z, request: GET https://api.example.com/, expect: { remaining: 4 } }
  - name: own limits replace those of the policy, and their burst is in proportion
    as: own
    request: GET https://api.example.com/
    expect: { limits: { per-user: { requests: 3, remaining: 0 } } }
  - name: a limit in shadow mode denies nothing, and counts requests that have its header
    as: auditor
    steps:
      - { request: GET https://api.example.com/export, expect: { limits: { export: { state: not_counted } } } }
      - request: GET https://api.example.com/export
        headers: { X-Region: eu }
        times: 12
        expect: { allowed: true, limits: { export: { state: ok, remaining: 0 } } }
  - name: other hosts have the rules of the routes file
    steps:
      - { request: GET https://other.example.com/healthz, expect: { allowed: true, policy: routes file } }
      - { request: GET https://other.example.com/a, expect: { status: 401 } }
      - { as: guest, request: GET https://other.example.com/a, expect: { reason: anonymous_not_allowed } }
      - { as: auditor, request: GET https://other.example.com/a, times: 2, expect: { remaining: 0 } }
      - { as: auditor, request: GET https://other.example.com/a, expect: { status: 429 } }
`,
  });
  const result = await cli(t)('policy', 'test', folder);
  t.equal(result.exitCode, 0, result.output);
});
