import t from 'tap';
import { type FileResult, formatFile, formatSum, TapReport } from './report.ts';

/** Output of tap for a file that fails, one that passes and one that crashes. */
const output = `TAP version 14
1..3
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
    # time=164.52ms
not ok 1 - packages/a/test/a.test.ts # time=1500ms
  ---
  command: node
  args:
    - --enable-source-maps
  exitCode: 1
  ...

# Subtest: packages/a/test/b.test.ts
    ok 1 - passes # time=29.267ms
    1..1
ok 2 - packages/a/test/b.test.ts # time=250ms

# Subtest: packages/a/test/c.test.ts
    1..0 # no tests found
not ok 3 - packages/a/test/c.test.ts # time=500ms
  ---
  exitCode: 1
  ...

# No coverage generated
# { total: 6, pass: 3, fail: 2, skip: 1, todo: 1 }
# time=2067.259ms`;

function read(text: string): { report: TapReport; files: FileResult[] } {
  const files: FileResult[] = [];
  const report = new TapReport((file) => files.push(file));
  for (const line of text.split('\n')) report.add(line);
  return { report, files };
}

t.test('each file is reported once, with its outcome and duration', async (t) => {
  const { files } = read(output);
  t.strictSame(
    files.map(({ name, ok, seconds }) => [name, ok, seconds]),
    [
      ['packages/a/test/a.test.ts', false, 1.5],
      ['packages/a/test/b.test.ts', true, 0.25],
      ['packages/a/test/c.test.ts', false, 0.5],
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
      '  ---',
      '  exitCode: 1',
      '  ...',
    ].join('\n'),
  );
  t.match(files[2]?.failures, /no tests found\n.*\n {2}exitCode: 1/);
  const [, passed] = files;
  t.equal(passed && formatFile(passed, '2/3'), '2/3  ok         0.3 s  packages/a/test/b.test.ts\n');
});

t.test('the sum counts what is still to do as skipped, and reasons are kept', async (t) => {
  const { report } = read(output);
  t.strictSame(report.sum, { passed: 3, failed: 2, skipped: 2 });
  t.equal(formatSum(report.sum ?? { passed: 0, failed: 0, skipped: 0 }), '3 passed, 2 failed, 2 skipped\n');
  t.strictSame([...report.skipReasons], ['left out: envoy is not installed']);
});

t.test('a run that crashed has no sum', async (t) => {
  t.equal(read('TAP version 14\n1..2\n').report.sum, undefined);
});
