import t from 'tap';
import type { MachineFacts } from '../../machine-facts.ts';
import { formatTable } from '../../report/format-table.ts';
import { editTimes } from '../edit-times.ts';
import type { XdsBenchReport } from '../run-xds-bench.ts';
import { formatXdsPage } from '../xds-page.ts';
import { xdsTables } from '../xds-tables.ts';

const times = editTimes([3, 1, 2]);

const report: XdsBenchReport = {
  edits: [{ way: 'server-side apply, from the 200', objects: 100, times }],
  manyObjects: [
    {
      source: 'folder',
      objects: 10_000,
      firstSnapshotMs: 2185.4,
      acknowledgedMs: 3415,
      xdsRssBytes: 466_400_000,
      xdsPeakRssBytes: 470e6,
      limiterRssBytes: 343e6,
      limiterPeakRssBytes: 350e6,
      edits: times,
      parts: { servedMs: 25, acceptedMs: 93 },
      xdsCpuMs: 41,
      limiterCpuMs: 52,
    },
  ],
  streams: [
    {
      streams: 500,
      objects: 100,
      settledMs: 1500,
      settledCpuMs: 900,
      edits: times,
      editCpuMs: 33,
      rssBytes: 250e6,
      peakRssBytes: 260e6,
    },
  ],
  bursts: [
    {
      edits: 1000,
      objects: 100,
      streams: 10,
      burstMs: 4210,
      fewestPushes: 150,
      mostPushes: 151,
      settledMs: 9.31,
    },
  ],
};

t.test('every part that was measured has a table, in milliseconds and megabytes', async (t) => {
  const rows = xdsTables(report, formatTable).map(({ table }) => table.split('\n').at(-1)?.trim());
  const cells = rows.map((row) => row?.split(/ {2,}/));
  t.strictSame(cells, [
    ['server-side apply, from the 200', '100', '3', '2.0', '3.0', '3.0'],
    ['folder', ...'10,000 2,185 3,415 466 470 343 350 3 2 3 25 93 41 52'.split(' ')],
    '500 100 1,500 900 3 2.0 3.0 3.0 33 250 260'.split(' '),
    '1,000 100 10 4,210 150 151 9.3'.split(' '),
  ]);
});

t.test('what was not measured has no table', async (t) => {
  t.strictSame(xdsTables({ edits: [], manyObjects: [], streams: [], bursts: [] }, formatTable), []);
});

t.test('the page names its command, the machine, and explains every table', async (t) => {
  const facts: MachineFacts = {
    cpu: 'a CPU',
    cores: 2,
    memoryBytes: 8e9,
    kernel: '6.1',
    node: '24.21.0',
    redis: '7.0.15',
    load: 0.1,
    date: '2026-01-31',
  };
  const page = formatXdsPage(report, facts, { sharedBy: 'all', programs: ['kube-apiserver 1.34.4'] });
  t.match(page, 'make bench-xds ARGS=--write');
  t.match(
    page,
    '2 cores of a CPU (shared by all), 8 GB, Linux 6.1, Node 24.21.0, kube-apiserver 1.34.4, 2026-01-31.',
  );
  t.equal(page.match(/^## .+\n\n\|(?:.+\n)+\n- /gm)?.length, 4);
});
