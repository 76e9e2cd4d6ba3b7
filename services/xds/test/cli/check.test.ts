import { makeTextFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { ManifestPositions } from '../../src/sources/manifest-positions.ts';
import { runCommand } from '../support/run-command.ts';

const check = (...args: string[]) => runCommand('cli/check-manifests.ts', args);

const manifest = (name: string, domain: string, unit = 'Hour') => `
apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: ${name} }
spec:
  domain: ${domain}
  descriptors:
    - { key: user, rateLimit: { unit: ${unit}, requestsPerUnit: 1 } }
`;

t.test('valid folder prints its totals', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('a.yaml', `${manifest('one', 'one')}---${manifest('two', 'two')}`);
  const { exitCode, output, errors } = await check('-folder', folder.path);
  t.strictSame([exitCode, output, errors], [0, 'ok: 2 objects, 2 domains, 2 limits\n', '']);
});

t.test('invalid YAML, invalid objects and conflicts are listed with their positions', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('a.yaml', manifest('one', 'one'));
  folder.write('b.yaml', manifest('two', 'one'));
  folder.write('c.yaml', manifest('three', 'three', 'Eon'));
  folder.write('d.yaml', 'kind: [');
  const { exitCode, output } = await check('-folder', folder.path);
  t.equal(exitCode, 1);
  const lines = output.trimEnd().split('\n');
  t.match(lines, [
    /\/b\.yaml:2:1: DuplicateKey: 'user' is already in default\/one \(a\.yaml#1\), which comes first/,
    /\/c\.yaml:8:33: spec\.descriptors\[0\]\.rateLimit\.unit: must be one of/,
    /\/d\.yaml:1:8: /,
    'not ok: 3 problems',
  ]);
  t.equal(lines.length, 4);
});

t.test('each problem of an object is a line with its position', async (t) => {
  const folder = makeTextFolder(t);
  const item = `
    apiVersion: ratelimit.tollgate.dev/v1alpha1
    kind: RateLimitConfig
    metadata: { name: two }
    spec:
      domain: two
      descriptors:
        - key: "a\\nb"
          rateLimit:
            unit: Eon
            requests: 1
            replaces: [{ name: "" }]
`;
  folder.write('a.yaml', `${manifest('one', 'one')}---\n---\nkind: List\nitems:\n  -${item}`);
  const { exitCode, output } = await check('-folder', folder.path);
  t.equal(exitCode, 1);
  const lines = output.trimEnd().split('\n').slice(0, -1);
  t.ok(lines.length >= 4, output);
  for (const line of lines)
    t.match(line, new RegExp(`^${folder.path}/a\\.yaml:\\d+:\\d+: spec\\.descriptors\\[0\\]`));
  t.match(output, /a\.yaml:22:13: spec\.descriptors\[0\]\.rateLimit\.unit: must be one of/);
  t.match(output, /a\.yaml:23:13: spec\.descriptors\[0\]\.rateLimit\.requests: unknown field/);
  t.match(output, /a\.yaml:21:11: spec\.descriptors\[0\]\.rateLimit\.requestsPerUnit: is required/);
  t.match(output, `not ok: ${lines.length} problems`);
  const { problems } = JSON.parse((await check('-folder', folder.path, '-json')).output);
  t.equal(problems.length, lines.length);
  t.match(
    problems.find(({ line }: { line: number }) => line === 22),
    {
      source: `${folder.path}/a.yaml`,
      column: 13,
      field: 'spec.descriptors[0].rateLimit.unit',
      message: /^must be/,
    },
  );
});

t.test('manifests behind a link to a directory are ignored with a warning', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('elsewhere/b.yaml', manifest('two', 'two'));
  folder.write('config/a.yaml', manifest('one', 'one'));
  folder.swapLink('config/more', '../elsewhere');
  const { exitCode, output } = await check('-folder', `${folder.path}/config`);
  t.equal(exitCode, 0);
  t.strictSame(output.trimEnd().split('\n'), [
    `${folder.path}/config/more: warning: a link to a directory is not followed`,
    'ok: 1 object, 1 domain, 1 limit',
  ]);
  t.match(JSON.parse((await check('-folder', `${folder.path}/config`, '-json')).output), {
    ok: true,
    warnings: [{ source: `${folder.path}/config/more`, message: 'a link to a directory is not followed' }],
  });
});

t.test('limits that do not count all callers are a warning', async (t) => {
  const folder = makeTextFolder(t);
  const spec = 'hosts: [a.test]\n  limits:\n    - { name: a, by: [User], requests: 1, per: Hour }';
  folder.write(
    'a.yaml',
    `apiVersion: policy.tollgate.dev/v1alpha1\nkind: AccessPolicy\nmetadata: { name: a }\nspec:\n  ${spec}\n`,
  );
  const { exitCode, output } = await check('-folder', folder.path);
  t.equal(exitCode, 0);
  const warning = 'no limit counts API keys without a user, machine clients on the target';
  t.match(output.split(': add')[0], `${folder.path}/a.yaml:6:3: warning: spec.limits: ${warning}`);
});

t.test('-allowed-hosts makes other hosts of a policy a problem', async (t) => {
  const folder = makeTextFolder(t);
  folder.write(
    'a.yaml',
    'apiVersion: policy.tollgate.dev/v1alpha1\nkind: AccessPolicy\nmetadata: { name: a, namespace: shop }\nspec:\n  hosts: [a.test, b.test]\n',
  );
  const run = (hosts: string) => check('-folder', folder.path, '-allowed-hosts', hosts);
  t.equal((await run('shop=a.test,b.test')).exitCode, 0);
  const { exitCode, output } = await run('shop=a.test');
  t.equal(exitCode, 1);
  t.match(output, 'a.yaml:5:3: spec.hosts: not allowed for the namespace shop');
  t.equal((await run('a.test')).exitCode, 2);
});

t.test('-json prints the same as JSON', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('a.yaml', manifest('one', 'one'));
  const { exitCode, output } = await check('-folder', folder.path, '-json');
  t.equal(exitCode, 0);
  t.strictSame(JSON.parse(output), {
    ok: true,
    problems: [],
    warnings: [],
    objects: 1,
    domains: 1,
    limits: 1,
  });
});

t.test('folder without objects is an error', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('a.yaml', 'apiVersion: apps/v1\nkind: Deployment\n');
  const { exitCode, output } = await check('-folder', folder.path);
  t.strictSame(
    [exitCode, output],
    [
      1,
      `${folder.path}: no RateLimitConfig or AccessPolicy found in .yaml, .yml and .json files\nnot ok: 1 problem\n`,
    ],
  );
});

t.test('missing folder or a file is an error', async (t) => {
  t.match(await check('-folder', '/nowhere'), { exitCode: 1, errors: 'no such directory' });
  t.match(await check(), { exitCode: 2, errors: '-folder is required' });
});

const text = `# first
---
a: &x { b: 1 }
c: *x
---
# nothing
---
kind: List
items:
  - d: [1, { e: 2 }]
...
`;
const positions = new ManifestPositions([{ source: 'x#1.yaml', text }]);

t.test('field has the position of its key, an item that of its start', (t) => {
  t.strictSame(positions.find('x#1.yaml#1', 'a.b'), { source: 'x#1.yaml', line: 3, column: 9 });
  t.strictSame(positions.find('x#1.yaml#2.items[0]', 'd[1].e'), { source: 'x#1.yaml', line: 10, column: 14 });
  t.strictSame(positions.find('x#1.yaml#2.items[0]', 'd[1]'), { source: 'x#1.yaml', line: 10, column: 12 });
  t.strictSame(positions.find('x#1.yaml#2.items[0]', ''), { source: 'x#1.yaml', line: 10, column: 5 });
  t.end();
});

t.test('missing field or one behind an alias has the position of its nearest ancestor', (t) => {
  t.match(positions.find('x#1.yaml#1', 'c.b'), { line: 4, column: 1 });
  t.match(positions.find('x#1.yaml#1', 'ab.c'), { line: 3, column: 1 });
  t.end();
});

t.test('invalid label has no position', (t) => {
  for (const label of ['x#1.yaml', 'x#1.yaml#3', 'x#1.yaml:3:1', 'other.yaml#1'])
    t.equal(positions.find(label, ''), undefined);
  t.end();
});
