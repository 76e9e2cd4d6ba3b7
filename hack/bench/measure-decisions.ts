import type { LoadCounts, LoadLatency, LoadPlan } from './load/load-plan.ts';
import { runLoad } from './load/run-load.ts';
import type { BenchOptions } from './options.ts';
import { probeRules } from './probe-rules.ts';
import { type ProcessUsage, readProcessUsage } from './process-usage.ts';
import { shouldRateLimitPath, writeRequests } from './requests.ts';
import type { DecisionScenario } from './scenario.ts';
import { startTestBed, type TestBed } from './test-bed.ts';

/** What one scenario of decisions gave. */
export interface DecisionResult {
  scenario: DecisionScenario;
  /** As many as the service could do. */
  decisionsPerSecond: number;
  /** CPU time of the service for each of them, in microseconds. */
  serviceCpuMicros: number;
  /** CPU time of Redis for each of them, in microseconds. Absent with the memory backend. */
  redisCpuMicros?: number;
  /** Waiting times at `options.rate` calls a second. */
  latency: LoadLatency;
  /** Resident memory of the service after the load. */
  rssBytes: number;
  peakRssBytes: number;
  /** Answers that were no decision, and decisions that were OVER_LIMIT, over both loads: neither should be any. */
  failures: Readonly<Record<string, number>>;
  overLimit: number;
}

/** How long each load runs: enough for the optimizing compiler, then for steady numbers. */
export const fullTimes = { warmUpMs: 3000, maximumMs: 8000, fixedRateMs: 10_000 } as const;

/** Starts a service, loads it as a scenario says, and stops it. */
export async function measureDecisions(
  scenario: DecisionScenario,
  options: BenchOptions,
): Promise<DecisionResult> {
  const bed = await startTestBed({ ...scenario, nodeFlags: options.nodeFlags });
  try {
    return await measureTestBed(scenario, options, bed);
  } finally {
    await bed.close();
  }
}

async function measureTestBed(
  scenario: DecisionScenario,
  options: BenchOptions,
  bed: TestBed,
): Promise<DecisionResult> {
  await probeRules(bed.service);
  const factor = options.quick ? 0.1 : 1;
  const plan = loadPlan(bed, scenario.keys, options);
  const service = usageMeter(bed.service.pid);
  const redis = bed.redisPids.map(usageMeter);
  const maximum = await runLoad(
    {
      ...plan,
      warmUpMs: fullTimes.warmUpMs * factor,
      measureMs: fullTimes.maximumMs * factor,
      load: { kind: 'closed', streams: options.streams },
    },
    {
      onMeasuring: () => {
        service.start();
        for (const meter of redis) meter.start();
      },
      onMeasured: () => {
        service.stop();
        for (const meter of redis) meter.stop();
      },
    },
  );
  const fixedRate = await runLoad({
    ...plan,
    warmUpMs: 1000 * factor,
    measureMs: fullTimes.fixedRateMs * factor,
    load: { kind: 'open', rate: options.rate },
  });
  if (fixedRate.latency === undefined) throw new Error('the load generator measured no waiting times');
  const { rssBytes, peakRssBytes } = readProcessUsage(bed.service.pid);
  const { decisions, elapsedMs } = maximum.counts;
  return {
    scenario,
    decisionsPerSecond: (decisions * 1000) / elapsedMs,
    serviceCpuMicros: (service.cpuMs() * 1000) / decisions,
    ...(redis.length > 0 && { redisCpuMicros: (sumCpuMs(redis) * 1000) / decisions }),
    latency: fixedRate.latency,
    rssBytes,
    peakRssBytes,
    failures: sumFailures(maximum.counts, fixedRate.counts),
    overLimit: maximum.counts.overLimit + fixedRate.counts.overLimit,
  };
}

/** The parts of a plan that do not depend on the kind of load. */
export function loadPlan(
  bed: TestBed,
  keys: number,
  options: BenchOptions,
): Omit<LoadPlan, 'load' | 'warmUpMs' | 'measureMs'> {
  return {
    host: bed.service.host,
    port: bed.service.grpcPort,
    path: shouldRateLimitPath,
    connections: options.connections,
    messages: writeRequests(keys).map((message) => Buffer.from(message).toString('base64')),
  };
}

function usageMeter(pid: number) {
  let before: ProcessUsage | undefined;
  let after: ProcessUsage | undefined;
  return {
    start: () => {
      before = readProcessUsage(pid);
    },
    stop: () => {
      after = readProcessUsage(pid);
    },
    cpuMs: () => (after?.cpuMs ?? 0) - (before?.cpuMs ?? 0),
  };
}

function sumCpuMs(meters: readonly ReturnType<typeof usageMeter>[]): number {
  return meters.reduce((sum, meter) => sum + meter.cpuMs(), 0);
}

function sumFailures(...counts: readonly LoadCounts[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const { failures } of counts) {
    for (const [what, count] of Object.entries(failures)) sum[what] = (sum[what] ?? 0) + count;
  }
  return sum;
}
