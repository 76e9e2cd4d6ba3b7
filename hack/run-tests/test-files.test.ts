import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { allTestFiles, fileDurations, formatSummary, splitByGoTools } from './test-files.ts';

const root = join(import.meta.dirname, '../..');

t.test('a test needs the programs in Go when an import leads to one that starts them', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder.path, path)), { recursive: true });
    writeFileSync(join(folder.path, path), text);
  };
  write('.taprc', 'include: ["a/**/*.test.ts"]\n');
  write('packages/testkit/src/suite.ts', "import './binaries.ts';\n");
  write('packages/testkit/src/binaries.ts', "import './suite.ts';\nfindBinary('kube-scheduler');\n");
  write('a/direct.test.ts', "findBinary('helm');\n");
  write('a/far.test.ts', "import { suite } from '@tollgate/testkit/suite';\nimport './near.ts';\n");
  write('a/near.ts', '');
  write('a/plain.test.ts', "import './near.ts';\nimport t from 'tap';\nfindBinary('envoy');\n");
  const files = allTestFiles(folder.path);
  t.strictSame(files, ['a/direct.test.ts', 'a/far.test.ts', 'a/plain.test.ts']);
  t.strictSame(splitByGoTools(folder.path, files), {
    with: ['a/direct.test.ts', 'a/far.test.ts'],
    without: ['a/plain.test.ts'],
  });
});

t.test('about one in ten tests of this repository needs the programs in Go', async (t) => {
  const files = splitByGoTools(root, allTestFiles(root));
  const expected = ['services/xds/test/kube/lease.test.ts', 'hack/charts/render.test.ts'];
  for (const path of expected) t.ok(files.with.includes(path), path);
  t.ok(files.without.includes('packages/rules/test/match.test.ts'));
  t.ok(files.with.length < files.without.length / 5, `${files.with.length} need them`);
});

t.test('durations are those of test files, failed ones too, and not of their subtests', async (t) => {
  const tap = [
    '# Subtest: a.test.ts',
    '    ok 1 - inner # time=5ms',
    'ok 1 - packages/a/test/a.test.ts # time=1500.5ms',
    'not ok 2 - packages/a/test/b.test.ts # time=20ms',
    '# time=3000ms',
  ].join('\n');
  t.strictSame(fileDurations(tap), [
    { name: 'packages/a/test/a.test.ts', seconds: 1.5005 },
    { name: 'packages/a/test/b.test.ts', seconds: 0.02 },
  ]);
});

t.test('the summary has all steps in their order and the slowest files first', async (t) => {
  const files = Array.from({ length: 30 }, (_, index) => ({ name: `${index}.test.ts`, seconds: index }));
  const lines = formatSummary([{ name: 'tests', seconds: 60 }], files).split('\n');
  t.equal(lines[1]?.trim(), '60.0 s  tests');
  t.equal(lines[3]?.trim(), '29.0 s  29.test.ts');
  t.equal(lines.length, 19);
});
