import t from 'tap';
import { fileDurations, formatSummary } from '../summary.ts';

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
