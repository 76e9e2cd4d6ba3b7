import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { runCommand } from '../support/run-command.ts';

function folderWith(t: Test, files: Record<string, string>): string {
  const { path, remove } = temporaryFolder();
  t.teardown(remove);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(path, name, '..'), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

const check = (...args: string[]) => runCommand('cli/check-config.ts', args);

const one = `domain: one
descriptors:
  - key: a
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: b
    rate_limit: { unlimited: true }
`;
const two = 'domain: two\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 5 } }]\n';

t.test('a valid folder ends with the number of domains and rules', async (t) => {
  const folder = folderWith(t, { 'one.yaml': one, 'more/two.yaml': two });
  const { exitCode, output, errors } = await check('-config_dir', folder);
  t.strictSame([exitCode, output, errors], [0, 'ok: 2 domains, 3 rules\n', '']);
});

t.test('all problems of all files are printed with their position', async (t) => {
  const folder = folderWith(t, {
    'bad.yaml': `domain: bad
descriptors:
  - key: a
    rate_limit: { unit: eon, requests_per_unit: 1 }
  - value: b
`,
    'good.yaml': one,
    'worse.yaml': 'domain: worse\nsurprise: 1\n',
    'worst.yaml': 'domain: [\n',
  });
  const { exitCode, output } = await check(`--config_dir=${folder}`);
  t.equal(exitCode, 1);
  const lines = output.trimEnd().split('\n');
  t.match(lines, [
    new RegExp(`^${folder}/bad\\.yaml:4:\\d+: invalid rate limit unit 'eon'`),
    `${folder}/bad.yaml:5:5: descriptor has empty key`,
    new RegExp(`^${folder}/worse\\.yaml:2:\\d+: config error, unknown key 'surprise'`),
    new RegExp(`^${folder}/worst\\.yaml:\\d+:\\d+: error loading config file: `),
    'not ok: 4 problems',
  ]);
  t.equal(lines.length, 5);
});

t.test('a domain in two files is a problem unless domains are merged', async (t) => {
  const again = 'domain: one\ndescriptors: [{ key: c, rate_limit: { unit: day, requests_per_unit: 5 } }]\n';
  const folder = folderWith(t, { 'a.yaml': one, 'b.yaml': again });
  const apart = await check('-config_dir', folder);
  t.equal(apart.exitCode, 1);
  t.match(apart.output, `${folder}/b.yaml:1:9: duplicate domain 'one' in config file`);
  const merged = await check('-config_dir', folder, '-merge_domain_configs');
  t.strictSame([merged.exitCode, merged.output], [0, 'ok: 1 domain, 3 rules\n']);
});

t.test('warnings are printed and exit with 0', async (t) => {
  const shadowed = `domain: one
descriptors:
  - key: a_b
    rate_limit: { unit: day, requests_per_unit: 5 }
  - key: w
    value: "x*"
    rate_limit: { unit: day, requests_per_unit: 5 }
  - key: w
    value: "xy*"
    rate_limit: { unit: day, requests_per_unit: 5 }
`;
  const { exitCode, output } = await check('-config_dir', folderWith(t, { 'a.yaml': shadowed }));
  t.equal(exitCode, 0);
  t.match(output, /a\.yaml:\d+:\d+: warning: .+\nok: 1 domain, 3 rules\n$/);
});

t.test('dot files are read as the service reads them', async (t) => {
  const folder = folderWith(t, { 'a.yaml': one, '.a.yaml.swp': 'domain: [', '..data/a.yaml': one });
  t.equal((await check('-config_dir', folder)).exitCode, 1);
  const ignoring = await check('-config_dir', folder, '-ignore_dot_files');
  t.strictSame([ignoring.exitCode, ignoring.output], [0, 'ok: 1 domain, 2 rules\n']);
});

t.test('-json prints the findings as JSON', async (t) => {
  const folder = folderWith(t, { 'a.yaml': 'domain: one\nsurprise: 1\n' });
  const bad = await check('-config_dir', folder, '-json');
  t.equal(bad.exitCode, 1);
  t.match(JSON.parse(bad.output), {
    ok: false,
    problems: [{ source: `${folder}/a.yaml`, line: 2, message: "config error, unknown key 'surprise'" }],
    warnings: [],
  });
  const good = await check('-config_dir', folderWith(t, { 'a.yaml': one }), '-json');
  t.equal(good.exitCode, 0);
  t.match(JSON.parse(good.output), { ok: true, domains: 1, rules: 2, problems: [] });
});

t.test('a missing folder, or a file, is reported', async (t) => {
  const folder = folderWith(t, { 'a.yaml': one });
  const missing = await check('-config_dir', join(folder, 'nope'));
  t.strictSame(
    [missing.exitCode, missing.output, missing.errors],
    [1, '', `-config_dir ${folder}/nope: the folder does not exist\n`],
  );
  const file = await check('-config_dir', join(folder, 'a.yaml'));
  t.equal(file.exitCode, 1);
  t.match(file.errors, 'not a folder');
});

t.test('without -config_dir, and with invalid flags, it exits with 2', async (t) => {
  const without = await check();
  t.equal(without.exitCode, 2);
  t.match(without.errors, '-config_dir is needed');
  const unknown = await check('-config-dir', '.');
  t.equal(unknown.exitCode, 2);
  t.match(unknown.errors, /unknown flag -config-dir: expected one of -config_dir, -merge_domain_configs/);
});

t.test('--help shows every flag and exits with 0', async (t) => {
  const { exitCode, output } = await check('--help');
  t.equal(exitCode, 0);
  t.match(output, /-config_dir <folder>[\s\S]*-merge_domain_configs[\s\S]*-json/);
});
