import t from 'tap';
import type { DecisionResult } from '../../measure-decisions.ts';
import type { RulesResult } from '../../measure-rules.ts';
import type { StandAloneResult } from '../../measure-stand-alone.ts';
import { parseOptions } from '../../options.ts';
import { formatBenchmarksPage } from '../../report/benchmarks-page.ts';

const facts = {
  cpu: 'A Processor',
  cores: 2,
  memoryBytes: 8e9,
  kernel: '6.1.0',
  node: '24.0.0',
  redis: '7.0.15',
  load: 0.1,
  date: '2026-01-31',
};

const decision: DecisionResult = {
  scenario: { kind: 'decisions', name: 'redis-1-key', backend: 'redis', keys: 1, rules: 10 },
  decisionsPerSecond: 12_345.6,
  serviceCpuMicros: 78.94,
  redisCpuMicros: 4,
  latency: { p50Ms: 0.4, p99Ms: 1.234, maxMs: 9, generatorP99Ms: 0.1 },
  rssBytes: 150_000_000,
  peakRssBytes: 160_000_000,
  failures: {},
  overLimit: 0,
};

const load: RulesResult = {
  scenario: { kind: 'rules', name: 'load-100k-rules', rules: 100_000 },
  startMs: 1500,
  reloadMs: 900,
  longestPauseMs: 800,
  rssBytes: 200_000_000,
  rssAfterReloadsBytes: 210_000_000,
  peakRssBytes: 220_000_000,
};

const standAlone: StandAloneResult = {
  shape: 'flat',
  rules: 100_000,
  fileBytes: 10_500_027,
  loadMs: 800,
  heapBytes: 47_560_928,
  peakRssBytes: 300_000_000,
  matchNanos: 321,
};

t.test('the page has the command, the machine and a row for each result', async (t) => {
  const parsed = parseOptions(['--write']);
  if (parsed.kind !== 'run') throw new Error('the options are wrong');
  const results = { decisions: [decision], rules: [load], standAlone: [standAlone] };
  // The padding of cells is the table's affair.
  const page = formatBenchmarksPage(results, parsed.options, facts).replaceAll(/ +/g, ' ');
  t.match(page, /^# Benchmarks\n\nWritten by `make bench ARGS=--write`/);
  t.match(page, /2 cores of A Processor .*, Node 24\.0\.0, Redis 7\.0\.15, 2026-01-31\./);
  t.match(page, '| redis-1-key | redis | 1 | 10 | 12,346 | 78.9 | 4.0 | 0.40 | 1.23 | 0.10 | 150 | 160 |');
  t.match(page, '| load-100k-rules | 100,000 | 1,500 | 900 | 800 | 200 | 210 | 220 |');
  t.match(page, '| flat | 100,000 | 10.5 | 800 | 47.6 | 300 | 321 |');
});
