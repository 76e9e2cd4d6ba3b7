import t from 'tap';
import { parseLog, parseSummary } from './h2load.ts';
import { formatPage, omitTails, percentile } from './report.ts';

const summary = `finished in 5.00s, 50868.00 req/s, 5.77MB/s
requests: 203472 total, 203472 started, 203472 done, 203472 succeeded, 0 failed, 0 errored, 0 timeout
`;

t.test('the summary of h2load is parsed', async (t) => {
  t.strictSame(parseSummary(summary), { requests: 203_472, perSecond: 50_868 });
});

t.test('failed requests are an error', async (t) => {
  t.throws(() => parseSummary(summary.replace('0 errored', '3 errored')), /requests failed/);
  t.throws(() => parseSummary(''), /requests failed/);
});

t.test('latencies are in milliseconds', async (t) => {
  t.strictSame(parseLog('1780000000\t200\t2500\n1780000001\t200\t400\n'), [2.5, 0.4]);
  t.equal(percentile([3, 1, 2, 4], 50), 2);
  t.equal(percentile([3, 1, 2, 4], 99), 4);
});

t.test('a page is formatted as the formatter would', async (t) => {
  const page = formatPage(
    {
      page: 'benchmarks-x.md',
      title: 'Benchmarks of X',
      intro: 'Written by a command.',
      sharedBy: 'all',
      programs: [],
      tables: [
        {
          title: 'First',
          head: ['what', 'calls/s', 'µs'],
          rows: [
            ['one', '1,000', '–'],
            ['another', '2.5', '10'],
          ],
          notes: ['a note'],
        },
      ],
    },
    '2 cores',
  );
  const table = [
    '| what    | calls/s |  µs |',
    '| ------- | ------: | --: |',
    '| one     |   1,000 |   – |',
    '| another |     2.5 |  10 |',
  ].join('\n');
  t.equal(
    page,
    `# Benchmarks of X\n\nWritten by a command.\n\n2 cores.\n\n## First\n\n${table}\n\n- a note\n`,
  );
});

t.test('a busy machine leaves out tails with the columns that belong to them', async (t) => {
  const report = omitTails({
    ...{ page: 'x.md', title: 'X', intro: 'Intro.', sharedBy: 'all', programs: [] },
    tables: [
      {
        title: 'First',
        head: ['what', 'p50 ms', 'p99 ms ours', 'peer', 'CPU µs'],
        rows: [['a', '1', '2', '3', '4']],
      },
    ],
  });
  t.match(report.intro, /busy/);
  t.strictSame(report.tables[0]?.head, ['what', 'p50 ms', 'CPU µs']);
  t.strictSame(report.tables[0]?.rows, [['a', '1', '4']]);
});
