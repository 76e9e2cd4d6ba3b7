import { type Column, formatTable } from '../report/format-table.ts';
import { type ChainResult, measureChain } from './measure-chain.ts';
import { type BenchDuration, type ChecksResult, measureChecks } from './measure-checks.ts';

/** What the platform does on this machine. */
export interface PlatformBenchReport {
  readonly checks: readonly ChecksResult[];
  readonly chain: readonly ChainResult[];
}

/** Measures external authorization alone, then requests through Envoy. */
export async function runPlatformBench(
  duration: BenchDuration,
  progress: (text: string) => void = () => {},
): Promise<PlatformBenchReport> {
  return { checks: await measureChecks(duration, progress), chain: await measureChain(duration, progress) };
}

/** Lays a report out for a terminal. */
export function formatPlatformBench(report: PlatformBenchReport): string {
  return platformBenchTables(report, formatTable)
    .map(({ title, table }) => `${title}\n${table}`)
    .join('\n\n');
}

/** The tables of a report, each laid out by `layOut`. */
export function platformBenchTables(
  { checks, chain }: PlatformBenchReport,
  layOut: <Row>(columns: readonly Column<Row>[], rows: readonly Row[]) => string,
): { title: string; table: string }[] {
  return [
    {
      title: 'External authorization: Checks over gRPC (8 connections × 16 streams)',
      table: layOut(checkColumns, checks),
    },
    { title: 'Requests through Envoy, one at a time', table: layOut(oneColumns(chain), chain) },
    { title: 'Requests through Envoy, 16 at once', table: layOut(manyColumns, chain) },
  ];
}

const checkColumns: readonly Column<ChecksResult>[] = [
  { head: '', cell: ({ name }) => name, align: 'left' },
  { head: 'Checks/s', cell: ({ perSecond }) => perSecond.toFixed(0) },
  { head: 'server CPU µs each', cell: ({ cpuMicros }) => cpuMicros.toFixed(1) },
  { head: 'memory MB', cell: ({ rssBytes }) => (rssBytes / 1e6).toFixed(0) },
];

const chainNames = {
  alone: 'Envoy alone',
  authz: 'with ext_authz',
  limits: 'with ratelimit (memory)',
  both: 'with both',
} as const;

const nameColumn: Column<ChainResult> = { head: '', cell: ({ chain }) => chainNames[chain], align: 'left' };

/** With what each chain adds to the first, which is Envoy alone. */
function oneColumns([alone]: readonly ChainResult[]): readonly Column<ChainResult>[] {
  const added =
    (key: 'p50Ms' | 'p99Ms') =>
    ({ oneAtATime }: ChainResult) =>
      (oneAtATime[key] - (alone?.oneAtATime[key] ?? Number.NaN)).toFixed(2);
  return [
    nameColumn,
    { head: 'p50 ms', cell: ({ oneAtATime }) => oneAtATime.p50Ms.toFixed(2) },
    { head: 'p99 ms', cell: ({ oneAtATime }) => oneAtATime.p99Ms.toFixed(2) },
    { head: 'added p50 ms', cell: added('p50Ms') },
    { head: 'added p99 ms', cell: added('p99Ms') },
  ];
}

const manyColumns: readonly Column<ChainResult>[] = [
  nameColumn,
  { head: 'requests/s', cell: ({ manyAtOnce }) => manyAtOnce.perSecond.toFixed(0) },
  { head: 'p50 ms', cell: ({ manyAtOnce }) => manyAtOnce.p50Ms.toFixed(2) },
  { head: 'p99 ms', cell: ({ manyAtOnce }) => manyAtOnce.p99Ms.toFixed(2) },
  { head: 'auth CPU µs', cell: ({ cpuMicros }) => cpuMicros.auth.toFixed(1) },
  { head: 'limiter CPU µs', cell: ({ cpuMicros }) => cpuMicros.limiter.toFixed(1) },
];
