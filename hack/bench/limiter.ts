import { temporaryFolder } from '@tollgate/testkit/folders';
import { runGrpcLoad } from './grpc-load.ts';
import { measureHotKey } from './hot-key.ts';
import { measureAlgorithms } from './limiter-algorithms.ts';
import { measureRuleLoading } from './limiter-rules.ts';
import {
  type Backend,
  checkDecision,
  connections,
  imageNodeFlags,
  type Limiter,
  type Maximum,
  measureMaximum,
  perSecond,
  shouldRateLimitPath,
  startLimiter,
  streams,
  writeRequests,
} from './limiter-service.ts';
import { programVersion } from './processes.ts';
import {
  type BenchOptions,
  formatCount,
  formatMegabytes,
  type LoadResult,
  median,
  type Report,
  type Table,
} from './report.ts';
import { replaceRules, writeRules } from './rules-file.ts';
import { findPeer, formatRatio, goModule, takeTurns } from './turns.ts';

const manyKeys = 10_000;
const fewRules = 10;
const manyRules = 100_000;
/** Calls per second when there is no peer that gives another number. */
const defaultRate = 2000;

interface Scenario {
  readonly name: string;
  /** Different requests. */
  readonly keys: number;
  readonly rules: number;
}

const scenarios: readonly Scenario[] = [
  { name: 'one hot key', keys: 1, rules: fewRules },
  { name: '10,000 keys', keys: manyKeys, rules: fewRules },
  { name: '10,000 keys, 100,000 rules', keys: manyKeys, rules: manyRules },
];

/** Decisions per second and their cost, beside a peer if there is one, and loading of rules. */
export async function benchLimiter(given: BenchOptions): Promise<Report> {
  const options = { ...given, nodeFlags: [...imageNodeFlags, ...given.nodeFlags] };
  const peer = findPeer('PEER_RATELIMIT');
  if (options.write && peer === undefined)
    throw new Error('set PEER_RATELIMIT to the Go limiter: docs/benchmarks.md begins with the ratios to it');
  const results: ScenarioResult[] = [];
  for (const scenario of scenarios) results.push(await measureScenario(scenario, peer, options));
  const algorithms = await measureAlgorithms(options);
  const hotKey = await measureHotKey(options);
  const loading = await measureRuleLoading([fewRules, manyRules], options);
  return {
    page: 'benchmarks.md',
    title: 'Benchmarks of the rate limit service',
    intro:
      'Written by `PEER_RATELIMIT=… make bench-limiter ARGS=--write` (hack/bench); do not edit by hand.\nThe peer is the Go service that Tollgate replaces. Both ran side by side, in turns, with the same settings and load; compare ratios, because machines differ.',
    sharedBy: 'the services, Redis and the load',
    programs: [programVersion('Redis', 'redis-server'), ...(peer === undefined ? [] : [goModule(peer)])],
    tables: [
      ...(peer === undefined ? [decisionTable(results)] : [ratioTable(results), latencyRatioTable(results)]),
      algorithms,
      hotKey,
      ...loading,
    ],
  };
}

interface LimiterResult {
  readonly limiter: Limiter;
  readonly maximum: readonly Maximum[];
  readonly fixed: readonly LoadResult[];
}

interface ScenarioResult {
  readonly scenario: Scenario;
  /** Calls per second where latency was measured. */
  readonly rate: number;
  readonly limiters: readonly LimiterResult[];
}

async function measureScenario(
  scenario: Scenario,
  peer: string | undefined,
  { quick, nodeFlags, progress }: BenchOptions,
): Promise<ScenarioResult> {
  await using cleanup = new AsyncDisposableStack();
  const folder = temporaryFolder();
  cleanup.defer(folder.remove);
  replaceRules(folder.path, writeRules(scenario.rules));
  const start = (backend: Backend, program?: string) =>
    startLimiter(backend, { program, nodeFlags, runtimeRoot: folder.path, cleanup });
  const limiters = [await start('memory'), await start('Redis')];
  if (peer !== undefined) limiters.push(await start('Redis', peer));
  const messages = writeRequests(scenario.keys);
  const seconds = (count: number) => count * (quick ? 100 : 1000);
  const load = { path: shouldRateLimitPath, messages, connections, streams };
  const rounds = quick ? 2 : 5;

  for (const { name, address } of limiters) {
    progress(`${scenario.name}: ${name}, warming up`);
    await checkDecision(address);
    await runGrpcLoad({ ...load, address, durationMs: seconds(2) });
  }
  progress(`${scenario.name}: maximum, ${rounds} rounds`);
  const maximum = await takeTurns(limiters, rounds, (limiter) =>
    measureMaximum(limiter, { ...load, durationMs: seconds(1.5) }),
  );
  const ofPeer = limiters.flatMap((limiter) => (limiter.isPeer ? (maximum.get(limiter) ?? []) : []));
  const rate = ofPeer.length === 0 ? defaultRate : Math.round(perSecond(ofPeer) / 2);
  progress(`${scenario.name}: latency at ${rate} calls/s, ${rounds} rounds`);
  const fixed = await takeTurns(limiters, rounds, ({ address }) =>
    runGrpcLoad({ ...load, address, rate, durationMs: seconds(1.5) }),
  );
  for (const { address } of limiters) await checkDecision(address);
  return {
    scenario,
    rate,
    limiters: limiters.map((limiter) => ({
      limiter,
      maximum: maximum.get(limiter) ?? [],
      fixed: fixed.get(limiter) ?? [],
    })),
  };
}

/** Each limiter of ours with the peer in the same scenario. */
function withPeer(results: readonly ScenarioResult[]) {
  return results.flatMap(({ scenario, rate, limiters }) => {
    const peer = limiters.find(({ limiter }) => limiter.isPeer);
    const ours = limiters.filter(({ limiter }) => !limiter.isPeer);
    return peer === undefined ? [] : ours.map((our) => ({ scenario, rate, our, peer }));
  });
}

function ratioTable(results: readonly ScenarioResult[]): Table {
  return {
    title: 'Decisions per second beside the peer',
    head: ['requests', 'our backend', 'ratio', 'ours/s', 'peer/s', 'CPU µs ours', 'peer', 'MB ours', 'peer'],
    rows: withPeer(results).map(({ scenario, our, peer }) => {
      const each = <K extends keyof Maximum>(key: K, of: LimiterResult) => of.maximum.map((run) => run[key]);
      const pair = (read: (of: LimiterResult) => string) => [read(our), read(peer)];
      return [
        ...[scenario.name, our.limiter.backend],
        formatRatio(each('perSecond', our), each('perSecond', peer)),
        ...pair((of) => formatCount(median(each('perSecond', of)))),
        ...pair((of) => median(each('cpuMicros', of)).toFixed(1)),
        ...pair((of) => formatMegabytes(Math.max(...each('rssBytes', of)))),
      ];
    }),
    notes: [
      'ratio: decisions per second of ours to those of the peer, which has a Redis of its own: median of the rounds, least and most in parentheses',
      `${connections} connections with ${streams} calls in flight each; each call has two descriptors, each with a counter of its own`,
      'CPU µs: user and system time of the service for each decision; MB: its resident memory under this load; images take 22 MB less, because types are stripped when they are built',
    ],
  };
}

function latencyRatioTable(results: readonly ScenarioResult[]): Table {
  return {
    title: 'Latency at half of the peer’s maximum rate',
    head: ['requests', 'our backend', 'calls/s', 'p50 ms ours', 'peer', 'p99 ms ours', 'peer'],
    rows: withPeer(results).map(({ scenario, rate, our, peer }) => [
      ...[scenario.name, our.limiter.backend, formatCount(rate)],
      ...[our, peer].map((of) => median(of.fixed.map(({ p50Ms }) => p50Ms)).toFixed(2)),
      ...[our, peer].map((of) => median(of.fixed.map(({ p99Ms }) => p99Ms)).toFixed(2)),
    ]),
    notes: ['medians of the rounds'],
  };
}

function decisionTable(results: readonly ScenarioResult[]): Table {
  const rows = results.flatMap(({ scenario, rate, limiters }) =>
    limiters
      .filter(({ limiter }) => !limiter.isPeer)
      .map(({ limiter, maximum, fixed }) => {
        const redis = maximum.map(({ redisMicros }) => redisMicros ?? Number.NaN);
        return [
          ...[scenario.name, limiter.backend, formatCount(perSecond(maximum))],
          median(maximum.map(({ cpuMicros }) => cpuMicros)).toFixed(1),
          limiter.redisPid === undefined ? '–' : median(redis).toFixed(1),
          ...[formatCount(rate), median(fixed.map(({ p50Ms }) => p50Ms)).toFixed(2)],
          median(fixed.map(({ p99Ms }) => p99Ms)).toFixed(2),
        ];
      }),
  );
  return {
    title: 'Decisions',
    head: ['requests', 'backend', 'decisions/s', 'CPU µs', 'Redis µs', 'at calls/s', 'p50 ms', 'p99 ms'],
    rows,
    notes: ['CPU µs and Redis µs: user and system time of the service and of Redis for each decision'],
  };
}
