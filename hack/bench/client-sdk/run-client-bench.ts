import { type Column, formatTable } from '../report/format-table.ts';
import { type BundleSize, bundleRequests, bundleSize } from './bundle-size.ts';
import { compare, type Result } from './compare.ts';
import type { ContestantList } from './contestant-lists.ts';
import { startContestants } from './start-contestants.ts';
import { startTokenServer } from './start-token-server.ts';

/** How much is measured. */
export interface ClientBenchOptions {
  readonly warmUpRounds: number;
  readonly rounds: number;
  readonly roundMs: number;
}

/** What the SDK costs on this machine. */
export interface ClientBenchReport {
  /** Client credentials tokens, 16 requests in flight. */
  readonly tokens: readonly Result[];
  /** Authorized requests over loopback, one at a time. */
  readonly requests: readonly Result[];
  /** The same with a `fetch` that answers at once: nothing but the library's own work. */
  readonly requestsWithoutNetwork: readonly Result[];
  readonly bundles: readonly BundleSize[];
}

/** Measures the SDK beside `fetch` and its peers, all in this run. */
export async function runClientBench(
  options: ClientBenchOptions,
  progress: (text: string) => void = () => {},
): Promise<ClientBenchReport> {
  const server = await startTokenServer();
  async function run(list: ContestantList, what: string, concurrency: number): Promise<Result[]> {
    const { contestants, stop } = await startContestants(list, server.origin);
    const step = (round: number) => progress(`\r${what}: round ${round} of ${options.rounds} `);
    try {
      return await compare(contestants, { ...options, concurrency }, step);
    } finally {
      await stop();
    }
  }
  try {
    const tokens = await run('tokens', 'token requests', 16);
    const requests = await run('requests', 'authorized requests', 1);
    const requestsWithoutNetwork = await run(
      'requestsWithoutNetwork',
      'authorized requests without network',
      1,
    );
    progress('\n');
    return {
      tokens,
      requests,
      requestsWithoutNetwork,
      bundles: await Promise.all(bundleRequests.map(bundleSize)),
    };
  } finally {
    await server.stop();
  }
}

/** Lays a report out for a terminal. */
export function formatClientBench(report: ClientBenchReport): string {
  return clientBenchTables(report, formatTable)
    .map(({ title, table }) => `${title}\n${table}`)
    .join('\n\n');
}

/** The tables of a report, each laid out by `layOut`. */
export function clientBenchTables(
  { tokens, requests, requestsWithoutNetwork, bundles }: ClientBenchReport,
  layOut: <Row>(columns: readonly Column<Row>[], rows: readonly Row[]) => string,
): { title: string; table: string }[] {
  return [
    { title: 'Token requests (client credentials, 16 in flight)', table: layOut(resultColumns, tokens) },
    {
      title: 'Authorized requests (one at a time, body read)',
      table: layOut(overheadColumns(requests), requests),
    },
    {
      title: 'Authorized requests without network (the library alone)',
      table: layOut(overheadColumns(requestsWithoutNetwork), requestsWithoutNetwork),
    },
    { title: 'Bundled and minified', table: layOut(bundleColumns, bundles) },
  ];
}

const resultColumns: readonly Column<Result>[] = [
  { head: '', cell: ({ name }) => name, align: 'left' },
  { head: 'requests/s', cell: ({ callsPerSecond }) => callsPerSecond.toFixed(0) },
  { head: 'CPU µs each', cell: ({ cpuMicros }) => cpuMicros.toFixed(1) },
  { head: '× fetch', cell: ({ ratio }) => ratio.toFixed(2) },
];

/** The columns above, and the time that one call takes more than `fetch` does. */
function overheadColumns([bare]: readonly Result[]): readonly Column<Result>[] {
  const micros = ({ callsPerSecond }: Result) => 1e6 / callsPerSecond;
  const bareMicros = bare === undefined ? Number.NaN : micros(bare);
  return [
    ...resultColumns,
    { head: 'µs each', cell: (result) => micros(result).toFixed(1) },
    { head: 'µs over fetch', cell: (result) => (micros(result) - bareMicros).toFixed(1) },
  ];
}

const bundleColumns: readonly Column<BundleSize>[] = [
  { head: '', cell: ({ name }) => name, align: 'left' },
  { head: 'minified kB', cell: ({ minifiedBytes }) => (minifiedBytes / 1000).toFixed(1) },
  { head: 'later, gzip kB', cell: ({ lazyGzippedBytes }) => (lazyGzippedBytes / 1000).toFixed(1) },
  { head: 'gzip kB', cell: ({ gzippedBytes }) => (gzippedBytes / 1000).toFixed(1) },
];
