import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startRateLimitService } from '@tollgate/testkit/services';
import { readProcessUsage } from './processes.ts';
import { type BenchOptions, formatCount, formatMegabytes, median, type Table } from './report.ts';
import { benchDomain, replaceRules, writeRules } from './rules-file.ts';

/** Time that rules take to load, in the running service and without it. */
export async function measureRuleLoading(
  ruleCounts: readonly number[],
  options: BenchOptions,
): Promise<Table[]> {
  const rows: string[][] = [];
  for (const count of ruleCounts) {
    options.progress(`loading ${count} rules`);
    rows.push(await measureRules(count, options));
  }
  options.progress('rules without the service');
  return [rulesTable(rows), await measureStandAlone()];
}

const reloads = 3;
const reloadTimeoutMs = 30_000;

function rulesTable(rows: readonly string[][]): Table {
  return {
    title: 'Rules in the running service',
    head: ['rules', 'start ms', 'reload ms', 'pause ms', 'RSS MB', 'after reloads MB', 'peak MB'],
    rows,
    notes: [
      'start: from the start of the process until it is healthy; reload: from the changed file until a decision follows it',
      'pause: the longest that a decision took during the reload',
    ],
  };
}

async function measureRules(count: number, { nodeFlags }: BenchOptions): Promise<string[]> {
  await using cleanup = new AsyncDisposableStack();
  const folder = temporaryFolder();
  cleanup.defer(folder.remove);
  replaceRules(folder.path, writeRules(count));
  const startedAt = performance.now();
  const settings = { RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' };
  const limiter = await startRateLimitService(settings, { nodeFlags });
  const startMs = performance.now() - startedAt;
  cleanup.defer(limiter.stop);
  const before = readProcessUsage(limiter.pid);
  const changes: { reloadMs: number; longestPauseMs: number }[] = [];
  for (let generation = 2; generation < 2 + reloads; generation++) {
    replaceRules(folder.path, writeRules(count, { generation }));
    changes.push(await waitForGeneration(`${limiter.httpUrl}/json`, generation));
  }
  const after = readProcessUsage(limiter.pid);
  return [
    ...[formatCount(count), formatCount(startMs)],
    formatCount(median(changes.map(({ reloadMs }) => reloadMs))),
    formatCount(median(changes.map(({ longestPauseMs }) => longestPauseMs))),
    ...[before.rssBytes, after.rssBytes, after.peakRssBytes].map(formatMegabytes),
  ];
}

/** Asks for decisions one after the other until one follows the rules of `generation`. */
async function waitForGeneration(
  url: string,
  generation: number,
): Promise<{ reloadMs: number; longestPauseMs: number }> {
  const descriptors = [{ entries: [{ key: 'generation', value: 'any' }] }];
  const body = JSON.stringify({ domain: benchDomain, descriptors });
  const startedAt = performance.now();
  for (let longestPauseMs = 0; ; ) {
    const sentAt = performance.now();
    const response = await fetch(url, { method: 'POST', body, signal: AbortSignal.timeout(reloadTimeoutMs) });
    // The service's JSON form of RateLimitResponse.
    const { statuses } = (await response.json()) as {
      statuses?: { currentLimit?: { requestsPerUnit?: number } }[];
    };
    const now = performance.now();
    longestPauseMs = Math.max(longestPauseMs, now - sentAt);
    if (statuses?.[0]?.currentLimit?.requestsPerUnit === generation)
      return { reloadMs: now - startedAt, longestPauseMs };
    if (now - startedAt > reloadTimeoutMs) throw new Error('a changed rule file did not take effect');
    await delay(5);
  }
}

/** Runs the benchmark of packages/rules, which prints a result per line. */
async function measureStandAlone(): Promise<Table> {
  const program = join(import.meta.dirname, '../../packages/rules/bench/main.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 300_000 });
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => {
      // Our own program.
      const result = JSON.parse(line) as Record<
        'rules' | 'fileBytes' | 'loadMs' | 'heapBytes' | 'peakRssBytes' | 'matchNanos',
        number
      > & { shape: string };
      return [
        ...[result.shape, formatCount(result.rules), (result.fileBytes / 1e6).toFixed(1)],
        ...[formatCount(result.loadMs), (result.heapBytes / 1e6).toFixed(1)],
        ...[formatMegabytes(result.peakRssBytes), formatCount(result.matchNanos)],
      ];
    });
  return {
    title: 'Rules without the service',
    head: ['rule file', 'rules', 'file MB', 'load ms', 'heap MB', 'peak MB', 'match ns'],
    rows,
    notes: [
      '`node packages/rules/bench/main.ts`: time of the first load in a fresh process, what the rules occupy, time to find the rule of a descriptor',
    ],
  };
}
