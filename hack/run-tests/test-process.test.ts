import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import type { FileResult } from './report.ts';
import { runTestProcess } from './test-process.ts';

/** Runs files with these texts in one process. */
async function run(t: Test, texts: Readonly<Record<string, string>>, job = 0) {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const paths = Object.entries(texts).map(([name, text]) => {
    const path = join(folder.path, name);
    writeFileSync(path, `import t from 'tap';\n${text}\n`);
    return path;
  });
  const results: FileResult[] = [];
  const { sum } = await runTestProcess(paths, (result) => results.push(result), job);
  const named = results.map(({ name, ok, failures }) => ({ name: basename(name), ok, failures }));
  return { sum, results: named };
}

t.test('files of a process do not affect each other, and each has its own result', async (t) => {
  const { sum, results } = await run(t, {
    'hooks.test.ts': `
      globalThis.calls = [];
      t.beforeEach(() => globalThis.calls.push('hook of the first file'));
      t.teardown(() => globalThis.calls.push('teardown of the first file'));
      t.test('one', async (t) => t.pass('passes'));`,
    'import.test.ts': "throw new Error('no such server');",
    'empty.test.ts': '',
    'late.test.ts': `
      t.test('late', () => new Promise((resolve) => {
        setTimeout(() => { throw new Error('thrown by a timer'); });
        setTimeout(resolve, 20);
      }));`,
    'rejected.test.ts': `
      t.test('outer', (t) => t.test('inner', () => new Promise((resolve) => {
        Promise.reject(new Error('no handler'));
        setTimeout(resolve, 20);
      })));`,
    'last.test.ts': `
      t.test('last', async (t) =>
        t.strictSame(globalThis.calls, ['hook of the first file', 'teardown of the first file']));`,
  });
  t.match(results, [
    { name: 'hooks.test.ts', ok: true },
    { name: 'import.test.ts', ok: false, failures: /no such server/ },
    { name: 'empty.test.ts', ok: false, failures: /no tests found/ },
    { name: 'late.test.ts', ok: false, failures: /not ok 1 - thrown by a timer/ },
    { name: 'rejected.test.ts', ok: false, failures: /# Subtest: inner\n +not ok 1 - no handler/ },
    { name: 'last.test.ts', ok: true },
  ]);
  t.equal(sum.skipped, 0);
  t.ok(sum.failed >= 3);
});

t.test('a process that ends early has run neither this file nor those after it', async (t) => {
  const { sum, results } = await run(t, {
    'first.test.ts': "t.pass('passes');",
    'exits.test.ts': "process.kill(process.pid, 'SIGKILL');",
    'last.test.ts': "t.pass('passes');",
  });
  t.match(results, [
    { name: 'first.test.ts', ok: true },
    { name: 'exits.test.ts', ok: false, failures: /ended by SIGKILL/ },
    { name: 'last.test.ts', ok: false, failures: 'not run' },
  ]);
  t.equal(sum.failed, 2);
});

t.test('processes that run at the same time take ports of their own', async (t) => {
  const text = "t.equal(process.env.TAP_JOB_ID, '3');";
  t.match(await run(t, { 'job.test.ts': text }, 3), { sum: { passed: 1, failed: 0 } });
});
