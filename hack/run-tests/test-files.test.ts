import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { allTestFiles, formatSummary, namedTestFiles, planProcesses, splitByGoTools } from './test-files.ts';

const root = join(import.meta.dirname, '../..');

t.test('a test needs the programs in Go when an import leads to one that starts them', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder.path, path)), { recursive: true });
    writeFileSync(join(folder.path, path), text);
  };
  write('packages/testkit/src/suite.ts', "import './binaries.ts';\n");
  write('packages/testkit/src/binaries.ts', "import './suite.ts';\nfindBinary('kube-scheduler');\n");
  write('proto/test/direct.test.ts', "findBinary('helm');\n");
  write('proto/test/far.test.ts', "import { suite } from '@tollgate/testkit/suite';\nimport './near.ts';\n");
  write('proto/test/near.ts', '');
  write('proto/test/plain.test.ts', "import './near.ts';\nimport t from 'tap';\nfindBinary('envoy');\n");
  const files = allTestFiles(folder.path);
  t.strictSame(files, ['proto/test/direct.test.ts', 'proto/test/far.test.ts', 'proto/test/plain.test.ts']);
  t.strictSame(splitByGoTools(folder.path, files), {
    with: ['proto/test/direct.test.ts', 'proto/test/far.test.ts'],
    without: ['proto/test/plain.test.ts'],
  });
});

t.test('about one in ten tests of this repository needs the programs in Go', async (t) => {
  const files = splitByGoTools(root, allTestFiles(root));
  const expected = ['services/xds/test/kube/lease.test.ts', 'hack/charts/render.test.ts'];
  for (const path of expected) t.ok(files.with.includes(path), path);
  t.ok(files.without.includes('packages/rules/test/match.test.ts'));
  t.ok(files.with.length < files.without.length / 5, `${files.with.length} need them`);
});

t.test('files and folders are named, and a name without tests is an error', async (t) => {
  const folder = 'hack/run-tests';
  t.match(namedTestFiles(root, [`${folder}/`]), { ok: true, files: [`${folder}/report.test.ts`] });
  t.strictSame(namedTestFiles(root, [`./${folder}/report.test.ts`]), {
    ok: true,
    files: [`${folder}/report.test.ts`],
  });
  const problem = (name: string) => t.match(namedTestFiles(root, [name]), { ok: false, problem: name });
  problem(`${folder}/missing.test.ts`);
  problem('docs/decisions');
});

t.test('without arguments that exist, one line says what is missing', async (t) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['hack/run-tests/main.ts', 'missing.test.ts'],
    {
      cwd: root,
      encoding: 'utf8',
    },
  );
  t.strictSame(
    { status, stdout, stderr },
    { status: 1, stdout: '', stderr: 'tests: missing.test.ts does not exist\n' },
  );
});

t.test('test files in examples of the Makefile and the documentation exist', async (t) => {
  for (const path of ['Makefile', 'CONTRIBUTING.md', 'README.md', 'docs/alerts.md'])
    for (const [, file = ''] of readFileSync(join(root, path), 'utf8').matchAll(/ARGS=([\w./-]+\.test\.ts)/g))
      t.ok(existsSync(join(root, file)), `${path}: ${file}`);
});

t.test('each file is in one process, and files of a workspace share some', async (t) => {
  const files = allTestFiles(root);
  const processes = planProcesses(root, files);
  t.strictSame(processes.flat().sort(), files);
  t.ok(processes.length < files.length / 3, `${processes.length} processes for ${files.length} files`);
  const find = (file: string) => processes.find((process) => process.includes(file)) ?? [];
  t.equal(find('hack/e2e/xds-chaos.test.ts').length, 1, 'it takes a minute');
  t.equal(find('packages/kit/test/telemetry.test.ts').length, 1, 'it changes the environment');
  const shared = find('packages/rules/test/match.test.ts');
  t.ok(shared.length > 1);
  t.ok(shared.every((file) => file.startsWith('packages/rules/')));
});

t.test('the summary has all steps in their order and the most expensive files first', async (t) => {
  const files = Array.from({ length: 30 }, (_, index) => ({
    name: `${index}.test.ts`,
    seconds: index,
    cpuSeconds: 30 - index,
  }));
  const lines = formatSummary([{ name: 'tests', seconds: 60 }], files).split('\n');
  t.equal(lines[1]?.trim(), '60.0 s  tests');
  t.equal(lines[3]?.trim(), '29.0 s  29.test.ts');
  t.equal(lines[19]?.trim(), '30.0 s  0.test.ts');
  t.equal(lines.length, 35);
});
