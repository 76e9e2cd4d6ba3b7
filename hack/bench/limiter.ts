import { execFile } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import { runH2load } from './h2load.ts';
import {
  type LimiterProcess,
  openCalls,
  programVersion,
  readProcessUsage,
  startLimiter,
} from './processes.ts';
import {
  type BenchOptions,
  formatCount,
  formatMegabytes,
  percentile,
  type Report,
  type Table,
} from './report.ts';
import { benchDomain, tenantCount, tenantName, writeRules } from './rules-file.ts';

export const shouldRateLimitPath = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

const rate = 2000;
const connections = 8;
const streams = 16;
const manyKeys = 64;
const fewRules = 10;
const manyRules = 100_000;

interface Scenario {
  readonly name: string;
  readonly backend: 'memory' | 'redis';
  /** Different requests; 1 is a hot key. */
  readonly keys: number;
  readonly rules: number;
}

const scenarios: readonly Scenario[] = (['memory', 'redis'] as const).flatMap((backend) => [
  { name: `${backend}-1-key`, backend, keys: 1, rules: fewRules },
  { name: `${backend}-${manyKeys}-keys`, backend, keys: manyKeys, rules: fewRules },
  { name: `${backend}-100k-rules`, backend, keys: manyKeys, rules: manyRules },
]);

/**
 * services/ratelimit: decisions per second and their cost, and the time that rules take to load.
 */
export async function benchLimiter(options: BenchOptions): Promise<Report> {
  const decisions: string[][] = [];
  for (const scenario of scenarios) {
    options.progress(scenario.name);
    decisions.push(await measureDecisions(scenario, options));
  }
  const rules: string[][] = [];
  for (const count of [fewRules, manyRules]) {
    options.progress(`loading ${count} rules`);
    rules.push(await measureRules(count, options));
  }
  options.progress('rules without the service');
  return {
    page: 'benchmarks.md',
    title: 'Benchmarks',
    intro: 'Written by `make bench-limiter ARGS=--write` (hack/bench); do not edit by hand.',
    sharedBy: 'the service, Redis and the load',
    programs: [programVersion('Redis', 'redis-server'), programVersion('h2load', 'h2load')],
    tables: [decisionTable(decisions), rulesTable(rules), await measureStandAlone()],
  };
}

function decisionTable(rows: readonly string[][]): Table {
  return {
    title: 'Decisions',
    head: [
      ...['scenario', 'keys', 'rules', 'decisions/s', 'CPU µs', 'Redis µs', 'p50 ms', 'p99 ms'],
      ...['RSS MB', 'peak MB'],
    ],
    rows,
    notes: [
      `decisions/s: ${connections} connections with ${streams} calls in flight each; with several keys one connection for each key and as many calls in flight in total. Each call has two descriptors, each with a counter of its own`,
      'CPU µs: user and system time of the service for each of these decisions; Redis µs: that of Redis',
      `p50, p99: response time at ${formatCount(rate)} calls per second`,
      'RSS, peak: resident memory of the service, 1 MB = 10⁶ bytes',
      'The service, Redis and the load share the cores above. CPU µs hardly depends on that.',
    ],
  };
}

async function measureDecisions(
  { name, backend, keys, rules }: Scenario,
  { quick, nodeFlags }: BenchOptions,
): Promise<string[]> {
  await using cleanup = new AsyncDisposableStack();
  const folder = temporaryFolder();
  cleanup.defer(folder.remove);
  replaceRules(folder.path, writeRules(rules));
  const { settings, pid: redisPid } = await startBackend(backend, cleanup);
  const limiter = await startLimiter({ RUNTIME_ROOT: folder.path, ...settings }, nodeFlags);
  cleanup.defer(limiter.stop);
  const load = {
    url: `http://${limiter.address}${shouldRateLimitPath}`,
    messages: writeRequests(keys),
    connections,
    streams,
  };
  const factor = quick ? 0.1 : 1;
  await checkDecision(limiter);
  await runH2load({ ...load, durationMs: 3000 * factor });
  const before = readProcessUsage(limiter.pid);
  const redisBefore = redisPid === undefined ? 0 : readProcessUsage(redisPid).cpuMs;
  const maximum = await runH2load({ ...load, durationMs: 8000 * factor });
  const after = readProcessUsage(limiter.pid);
  const redisMs = redisPid === undefined ? undefined : readProcessUsage(redisPid).cpuMs - redisBefore;
  const fixed = await runH2load({ ...load, rate, durationMs: 10_000 * factor });
  await checkDecision(limiter);
  const usage = readProcessUsage(limiter.pid);
  const micros = (cpuMs: number) => ((cpuMs * 1000) / maximum.requests).toFixed(1);
  return [
    ...[name, formatCount(keys), formatCount(rules), formatCount(maximum.perSecond)],
    ...[micros(after.cpuMs - before.cpuMs), redisMs === undefined ? '–' : micros(redisMs)],
    ...[fixed.p50Ms.toFixed(2), fixed.p99Ms.toFixed(2)],
    ...[formatMegabytes(usage.rssBytes), formatMegabytes(usage.peakRssBytes)],
  ];
}

async function startBackend(
  backend: Scenario['backend'],
  cleanup: AsyncDisposableStack,
): Promise<{ settings: Readonly<Record<string, string>>; pid?: number }> {
  if (backend === 'memory') return { settings: {} };
  const redis = await startRedis();
  cleanup.defer(redis.stop);
  const pid = Number(/process_id:(\d+)/.exec(String(await redisCommand(redis, 'INFO', 'server')))?.[1]);
  const settings = { BACKEND_TYPE: 'redis', KVSTORE_SOCKET_TYPE: 'tcp', KVSTORE_URL: redis.address };
  return { settings, pid };
}

/** Puts a rule file in place, at once as an editor does. */
function replaceRules(folder: string, text: string): void {
  mkdirSync(join(folder, 'config'), { recursive: true });
  writeFileSync(join(folder, 'aside.yaml'), text);
  renameSync(join(folder, 'aside.yaml'), join(folder, 'config/bench.yaml'));
}

/** Different requests of two descriptors each: a user, and the user within a tenant. */
function writeRequests(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => {
    const user = { key: 'user', value: `user-${String(index).padStart(6, '0')}` };
    const tenant = { key: 'tenant', value: tenantName(index % tenantCount) };
    const request = create(RateLimitRequestSchema, {
      domain: benchDomain,
      descriptors: [{ entries: [user] }, { entries: [tenant, user] }],
    });
    return toBinary(RateLimitRequestSchema, request);
  });
}

/**
 * Without rules the service would allow everything, and be fast.
 *
 * @throws Error when a descriptor has no limit.
 */
async function checkDecision(limiter: LimiterProcess): Promise<void> {
  const calls = openCalls(limiter.address);
  try {
    const [request = new Uint8Array()] = writeRequests(1);
    const reply = await calls.call(shouldRateLimitPath, request);
    const { statuses } = fromBinary(RateLimitResponseSchema, reply);
    if (statuses.length !== 2 || statuses.some(({ currentLimit }) => currentLimit === undefined))
      throw new Error('the rules of the benchmark are not in force');
  } finally {
    calls.close();
  }
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
  const limiter = await startLimiter({ RUNTIME_ROOT: folder.path }, nodeFlags);
  cleanup.defer(limiter.stop);
  const before = readProcessUsage(limiter.pid);
  const changes: { reloadMs: number; longestPauseMs: number }[] = [];
  for (let generation = 2; generation < 2 + reloads; generation++) {
    replaceRules(folder.path, writeRules(count, generation));
    changes.push(await waitForGeneration(`${limiter.httpUrl}/json`, generation));
  }
  const after = readProcessUsage(limiter.pid);
  const median = (key: 'reloadMs' | 'longestPauseMs') =>
    formatCount(
      percentile(
        changes.map((change) => change[key]),
        50,
      ),
    );
  return [
    ...[formatCount(count), formatCount(limiter.startMs), median('reloadMs'), median('longestPauseMs')],
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
