import t from 'tap';
import { type FileResult, formatFile, formatSum, TapReport } from './report.ts';

/** Output of a process for a file that fails, one that passes and one that throws. */
const output = `TAP version 14
# Subtest: packages/a/test/a.test.ts
    # Subtest: one passes
        ok 1 - should be equal
        1..1
    ok 1 - one passes # time=26.422ms

    # Subtest: two fails
        # Subtest: inner
            ok 1 - fine
            not ok 2 - should be equivalent
              ---
              diff: |
                -  "a": 2,
              ...

            1..2
        not ok 1 - inner # time=60ms

        1..1
    not ok 2 - two fails # time=64.892ms

    ok 3 - three # SKIP left out: envoy is not installed
    1..3
not ok 1 - packages/a/test/a.test.ts # time=1500ms
  ---
  at:
    fileName: hack/run-tests/process.ts
  ...

# cpu=2.50 s
# Subtest: packages/a/test/b.test.ts
    ok 1 - passes # time=29.267ms
    1..1
ok 2 - packages/a/test/b.test.ts # time=250ms

# cpu=0.20 s
# Subtest: packages/a/test/c.test.ts
    not ok 1 - late
      ---
      tapCaught: uncaughtException
      ...

    1..1
not ok 3 - packages/a/test/c.test.ts # time=500ms
  ---
  at:
    fileName: hack/run-tests/process.ts
  ...

# cpu=0.40 s
not ok 4 - packages/a/test/c.test.ts # time=500ms
  ---
  at:
    fileName: hack/run-tests/process.ts
  ...

1..4
# { total: 6, pass: 3, fail: 2, skip: 1, todo: 1 }
# time=2067.259ms`;

function read(text: string): { report: TapReport; files: FileResult[] } {
  const files: FileResult[] = [];
  const report = new TapReport((file) => files.push(file));
  for (const line of text.split('\n')) report.add(line);
  return { report, files };
}

t.test('each file is reported once, with its outcome, duration and CPU time', async (t) => {
  const { files } = read(output);
  t.strictSame(
    files.map(({ name, ok, seconds, cpuSeconds }) => [name, ok, seconds, cpuSeconds]),
    [
      ['packages/a/test/a.test.ts', false, 1.5, 2.5],
      ['packages/a/test/b.test.ts', true, 0.25, 0.2],
      ['packages/a/test/c.test.ts', false, 0.5, 0.4],
    ],
  );
});

t.test('failures are printed in full with their titles, and nothing that passed', async (t) => {
  const { files } = read(output);
  t.equal(
    files[0]?.failures,
    [
      '    # Subtest: two fails',
      '        # Subtest: inner',
      '            not ok 2 - should be equivalent',
      '              ---',
      '              diff: |',
      '                -  "a": 2,',
      '              ...',
      '        not ok 1 - inner # time=60ms',
      '    not ok 2 - two fails # time=64.892ms',
    ].join('\n'),
  );
  t.match(files[2]?.failures, /not ok 1 - late\n.*\n {6}tapCaught: uncaughtException/);
  const [, passed] = files;
  t.equal(passed && formatFile(passed, '2/3'), '2/3  ok         0.3 s  packages/a/test/b.test.ts\n');
});

t.test('the sum counts what is still to do as skipped, and reasons are kept', async (t) => {
  const { report } = read(output);
  t.strictSame(report.end([], undefined), { passed: 3, failed: 2, skipped: 2 });
  t.equal(formatSum({ passed: 3, failed: 2, skipped: 2 }), '3 passed, 2 failed, 2 skipped\n');
  t.strictSame([...report.skipReasons], ['left out: envoy is not installed']);
});

t.test('files that a process has not finished have failed', async (t) => {
  const { report, files } = read(
    'TAP version 14\n# Subtest: a.test.ts\n    ok 1 - passes\nok 1 - a.test.ts # time=1s\n# cpu=1 s\nFATAL ERROR',
  );
  const sum = report.end(['a.test.ts', 'b.test.ts', 'c.test.ts'], 'ended by SIGABRT');
  t.strictSame(sum, { passed: 0, failed: 2, skipped: 0 });
  t.strictSame(
    files.map(({ name, ok, failures }) => [name, ok, failures]),
    [
      ['a.test.ts', true, ''],
      ['b.test.ts', false, 'FATAL ERROR\nthe process ended: ended by SIGABRT'],
      ['c.test.ts', false, 'not run'],
    ],
  );
});

t.test('a process that fails after its files has failed', async (t) => {
  const { report, files } = read(
    '# Subtest: a.test.ts\n    ok 1 - passes\nok 1 - a.test.ts # time=1s\n# cpu=1 s\nnot ok 2 - still open\n# { total: 1, pass: 1 }',
  );
  t.strictSame(report.end(['a.test.ts'], 'exit code 1'), { passed: 1, failed: 1, skipped: 0 });
  t.match(files[1], { ok: false, failures: /not ok 2 - still open\n.*exit code 1/ });
});
