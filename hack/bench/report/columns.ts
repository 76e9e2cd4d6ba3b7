import type { DecisionResult } from '../measure-decisions.ts';
import type { RulesResult } from '../measure-rules.ts';
import type { StandAloneResult } from '../measure-stand-alone.ts';
import type { Column } from './format-table.ts';

/** Columns of the table of decisions. */
export const decisionColumns: readonly Column<DecisionResult>[] = [
  { head: 'scenario', align: 'left', cell: ({ scenario }) => scenario.name },
  { head: 'backend', align: 'left', cell: ({ scenario }) => scenario.backend },
  { head: 'keys', cell: ({ scenario }) => formatCount(scenario.keys) },
  { head: 'rules', cell: ({ scenario }) => formatCount(scenario.rules) },
  { head: 'decisions/s', cell: (row) => formatCount(row.decisionsPerSecond) },
  { head: 'CPU µs', cell: (row) => row.serviceCpuMicros.toFixed(1) },
  { head: 'Redis µs', cell: (row) => row.redisCpuMicros?.toFixed(1) ?? '–' },
  { head: 'p50 ms', cell: (row) => row.latency.p50Ms.toFixed(2) },
  { head: 'p99 ms', cell: (row) => row.latency.p99Ms.toFixed(2) },
  { head: 'late ms', cell: (row) => row.latency.generatorP99Ms.toFixed(2) },
  { head: 'RSS MB', cell: (row) => formatMegabytes(row.rssBytes) },
  { head: 'peak MB', cell: (row) => formatMegabytes(row.peakRssBytes) },
];

/** Columns of the table of rule loading. */
export const rulesColumns: readonly Column<RulesResult>[] = [
  { head: 'scenario', align: 'left', cell: ({ scenario }) => scenario.name },
  { head: 'rules', cell: ({ scenario }) => formatCount(scenario.rules) },
  { head: 'start ms', cell: (row) => formatCount(row.startMs) },
  { head: 'reload ms', cell: (row) => formatCount(row.reloadMs) },
  { head: 'pause ms', cell: (row) => formatCount(row.longestPauseMs) },
  { head: 'RSS MB', cell: (row) => formatMegabytes(row.rssBytes) },
  { head: 'after reloads MB', cell: (row) => formatMegabytes(row.rssAfterReloadsBytes) },
  { head: 'peak MB', cell: (row) => formatMegabytes(row.peakRssBytes) },
];

/** Columns of the table of rules without the service. */
export const standAloneColumns: readonly Column<StandAloneResult>[] = [
  { head: 'rule file', align: 'left', cell: ({ shape }) => shape },
  { head: 'rules', cell: ({ rules }) => formatCount(rules) },
  { head: 'file MB', cell: ({ fileBytes }) => (fileBytes / 1e6).toFixed(1) },
  { head: 'load ms', cell: ({ loadMs }) => formatCount(loadMs) },
  { head: 'heap MB', cell: ({ heapBytes }) => (heapBytes / 1e6).toFixed(1) },
  { head: 'peak MB', cell: ({ peakRssBytes }) => formatMegabytes(peakRssBytes) },
  { head: 'match ns', cell: ({ matchNanos }) => formatCount(matchNanos) },
];

/** What the heads mean, in their order. */
export const columnNotes: readonly string[] = [
  'decisions/s: as many as the service makes with a fixed number of calls in flight; only answers with grpc-status 0 count',
  'CPU µs: user and system time of the service for each of these decisions; Redis µs: that of Redis',
  'p50, p99: waiting time at a fixed rate, from the moment a call was due; late: how late the generator started it (p99)',
  'start: from the start of the process until it is healthy; reload: from the changed file until a decision follows it',
  'pause: the longest that a decision took during the reload; RSS, peak: resident memory of the service, 1 MB = 10⁶ bytes',
  'load, heap, match: without the service, time of the first load in a fresh process, what the rules occupy, time to find the rule of a descriptor',
];

function formatCount(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function formatMegabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}
