import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { findBinary } from '@tollgate/testkit/processes';
import { type LoadResult, percentile } from './report.ts';

/** GET requests over HTTP/1.1, one at a time on each connection. */
export interface HttpLoad {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly durationMs: number;
}

/** Beyond the planned time. */
const graceMs = 30_000;

/** Runs h2load. @throws Error when it fails, or a request does. */
export async function runH2load({ url, headers, connections, durationMs }: HttpLoad): Promise<LoadResult> {
  const folder = temporaryFolder();
  try {
    const log = join(folder.path, 'log');
    const { stdout } = await promisify(execFile)(
      findBinary('h2load'),
      [
        ...['--h1', '--threads=1', `--clients=${connections}`],
        ...[`--duration=${Math.ceil(durationMs)}ms`, `--log-file=${log}`],
        ...Object.entries(headers).map(([name, value]) => `--header=${name}: ${value}`),
        url,
      ],
      { timeout: durationMs + graceMs },
    );
    const latenciesMs = parseLog(readFileSync(log, 'utf8'));
    return {
      ...parseSummary(stdout),
      p50Ms: percentile(latenciesMs, 50),
      p99Ms: percentile(latenciesMs, 99),
    };
  } finally {
    folder.remove();
  }
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
