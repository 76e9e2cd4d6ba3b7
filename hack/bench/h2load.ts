import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { findBinary } from '@tollgate/testkit/processes';
import { percentile } from './report.ts';

/** What h2load sends. */
export interface Load {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** HTTP/1.1 instead of HTTP/2 with prior knowledge. */
  readonly http1?: boolean;
  /**
   * Messages of a unary gRPC method; without any, GET requests are sent. h2load sends one body, so
   * that several bodies are sent by as many processes with one connection each.
   */
  readonly messages?: readonly Uint8Array[];
  readonly connections: number;
  /** Requests in flight per connection. */
  readonly streams: number;
  readonly durationMs: number;
  /** Requests per second over all connections; as many as possible when missing. */
  readonly rate?: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  /**
   * From the request until the end of its response. A request that h2load sent late is not counted
   * as waiting.
   */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const grpcHeaders = { 'content-type': 'application/grpc', te: 'trailers' };

/** Beyond the planned time. */
const graceMs = 30_000;

/**
 * Runs h2load. Its HTTP status says nothing about a gRPC call: check one call before and after.
 *
 * @throws Error when it fails, or a request does.
 */
export async function runH2load(load: Load): Promise<LoadResult> {
  const { messages = [], connections, streams } = load;
  const folder = temporaryFolder();
  try {
    if (messages.length <= 1)
      return combine([await runOne(load, { folder: folder.path, message: messages[0], index: 0 })]);
    const inFlight = Math.max(1, Math.round((connections * streams) / messages.length));
    const share = {
      ...load,
      connections: 1,
      streams: inFlight,
      ...(load.rate !== undefined && { rate: load.rate / messages.length }),
    };
    const runs = messages.map((message, index) => runOne(share, { folder: folder.path, message, index }));
    return combine(await Promise.all(runs));
  } finally {
    folder.remove();
  }
}

interface OneRun {
  readonly requests: number;
  readonly perSecond: number;
  readonly latenciesMs: readonly number[];
}

async function runOne(
  { url, headers, http1 = false, connections, streams, durationMs, rate }: Load,
  {
    folder,
    message,
    index,
  }: { readonly folder: string; readonly message: Uint8Array | undefined; readonly index: number },
): Promise<OneRun> {
  const [body, log] = [join(folder, `body-${index}`), join(folder, `log-${index}`)];
  if (message !== undefined) writeFileSync(body, frameMessage(message));
  const sent = { ...headers, ...(message === undefined ? {} : grpcHeaders) };
  const { stdout } = await promisify(execFile)(
    findBinary('h2load'),
    [
      ...[`--clients=${connections}`, `--max-concurrent-streams=${streams}`, '--threads=1'],
      ...[`--duration=${Math.ceil(durationMs)}ms`, `--log-file=${log}`],
      ...(rate === undefined ? [] : [`--rps=${rate / connections}`]),
      ...(http1 ? ['--h1'] : []),
      ...(message === undefined ? [] : [`--data=${body}`]),
      ...Object.entries(sent).map(([name, value]) => `--header=${name}: ${value}`),
      url,
    ],
    { timeout: durationMs + graceMs },
  );
  return { ...parseSummary(stdout), latenciesMs: parseLog(readFileSync(log, 'utf8')) };
}

/** A message as gRPC sends it: not compressed, its length, its bytes. */
function frameMessage(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Reads what h2load prints at the end. @throws Error when a request failed. */
export function parseSummary(text: string): { requests: number; perSecond: number } {
  const number = (pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? Number.NaN);
  const requests = number(/(\d+) succeeded/);
  const perSecond = number(/^finished in .*?, ([\d.]+) req\/s/m);
  const failures = /\d+ succeeded, (.*)$/m.exec(text)?.[1] ?? '';
  if (Number.isNaN(requests) || /[1-9]/.test(failures)) throw new Error(`h2load: requests failed:\n${text}`);
  return { requests, perSecond };
}

/** Start in µs, HTTP status, duration in µs, separated by tabs. */
export function parseLog(text: string): number[] {
  return text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Number(line.split('\t')[2]) / 1000);
}

function combine(runs: readonly OneRun[]): LoadResult {
  const latenciesMs = runs.flatMap((run) => run.latenciesMs);
  // In a short run on a busy machine a process may get no response in time; all together must.
  if (runs.every(({ requests }) => requests === 0)) throw new Error('h2load: no response in time');
  const sum = (key: 'requests' | 'perSecond') => runs.reduce((total, run) => total + run[key], 0);
  return {
    requests: sum('requests'),
    perSecond: sum('perSecond'),
    p50Ms: percentile(latenciesMs, 50),
    p99Ms: percentile(latenciesMs, 99),
  };
}
