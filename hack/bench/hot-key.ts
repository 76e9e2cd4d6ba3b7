import { create, toBinary } from '@bufbuild/protobuf';
import { RateLimitRequestSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { type Redis, redisCommand, startRedis } from '@tollgate/testkit/redis';
import { startRateLimitService } from '@tollgate/testkit/services';
import { runGrpcLoad } from './grpc-load.ts';
import { readProcessUsage } from './processes.ts';
import { type BenchOptions, formatCount, median, type Table } from './report.ts';
import { benchDomain, replaceRules } from './rules-file.ts';
import { formatRatio, takeTurns } from './turns.ts';

const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const replicaCount = 4;
const connectionsEach = 2;
const streams = 16;
/** Calls per second of each replica where the machine is not busy. */
const fixedRateEach = 500;
/** In each second; no request of a run is over it. */
const limit = 1_000_000;
const keys = ['without', '5%'];

const rules = `domain: ${benchDomain}
descriptors:
  - { key: hot, value: without, rate_limit: { unit: second, requests_per_unit: ${limit} } }
  - { key: hot, value: 5%, rate_limit: { unit: second, requests_per_unit: ${limit}, lease: 5% } }
`;

interface Fleet {
  readonly redis: Redis;
  readonly replicas: readonly { readonly address: string; readonly pid: number }[];
}

interface Measured {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly cpuMicros: number;
  readonly redisMicros: number;
  /** INCRBY for 1,000 decisions. */
  readonly commands: number;
}

/** Several replicas that share one counter, in turns with and without a lease. */
export async function measureHotKey(options: BenchOptions): Promise<Table> {
  await using cleanup = new AsyncDisposableStack();
  const fleet = await startFleet(options, cleanup);
  const durationMs = options.quick ? 150 : 1_500;
  const rounds = options.quick ? 2 : 5;
  const rows: string[][] = [];
  options.progress(`one key, ${replicaCount} replicas: warming up`);
  for (const key of keys) await measure(fleet, { key, durationMs: durationMs * 2 });
  for (const rate of [undefined, fixedRateEach]) {
    options.progress(`one key, ${replicaCount} replicas: ${rate === undefined ? 'maximum' : 'fixed rate'}`);
    const results = await takeTurns(keys, rounds, (key) => measure(fleet, { key, durationMs, rate }));
    const load = rate === undefined ? 'maximum' : `${formatCount(rate * replicaCount)}/s`;
    for (const key of keys)
      rows.push([load, key, ...toCells(results.get(key) ?? [], results.get('without'))]);
  }
  return {
    title: `One hot key, ${replicaCount} replicas and one Redis`,
    head: ['load', 'lease', 'decisions/s', 'ratio', 'CPU µs', 'Redis µs', 'INCRBY', 'p50 ms'],
    rows,
    notes: [
      `${replicaCount} processes on the cores of this machine, each with ${connectionsEach} connections; ${formatCount(limit)} requests per second are allowed`,
      'ratio: decisions per second to those without a lease, in turns: median of the rounds, least and most in parentheses',
      'INCRBY: commands for 1,000 decisions; CPU µs and Redis µs: of the services and of Redis for each decision',
    ],
  };
}

async function startFleet({ nodeFlags }: BenchOptions, cleanup: AsyncDisposableStack): Promise<Fleet> {
  const folder = temporaryFolder();
  cleanup.defer(folder.remove);
  replaceRules(folder.path, rules);
  const redis = await startRedis();
  cleanup.defer(redis.stop);
  const settings = {
    RUNTIME_ROOT: folder.path,
    RUNTIME_WATCH_ROOT: 'false',
    LOG_LEVEL: 'error',
    BACKEND_TYPE: 'redis',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: redis.address,
  };
  const replicas = [];
  for (let i = 0; i < replicaCount; i += 1) {
    const replica = await startRateLimitService(settings, { nodeFlags });
    cleanup.defer(replica.stop);
    replicas.push(replica);
  }
  return { redis, replicas };
}

async function measure(
  { redis, replicas }: Fleet,
  load: { readonly key: string; readonly durationMs: number; readonly rate?: number | undefined },
): Promise<Measured> {
  const { key, durationMs, rate } = load;
  const request = create(RateLimitRequestSchema, {
    domain: benchDomain,
    descriptors: [{ entries: [{ key: 'hot', value: key }] }],
  });
  const messages = [toBinary(RateLimitRequestSchema, request)];
  const readUsage = async () => ({
    cpuMs: replicas.reduce((sum, { pid }) => sum + readProcessUsage(pid).cpuMs, 0),
    redisMs: readProcessUsage(redis.pid).cpuMs,
    commands: await countIncrements(redis),
  });
  const before = await readUsage();
  const results = await Promise.all(
    replicas.map(({ address }) =>
      runGrpcLoad({
        ...{ address, path, messages, connections: connectionsEach, streams, durationMs },
        ...(rate !== undefined && { rate }),
      }),
    ),
  );
  const after = await readUsage();
  const requests = results.reduce((sum, result) => sum + result.requests, 0);
  return {
    perSecond: results.reduce((sum, result) => sum + result.perSecond, 0),
    p50Ms: median(results.map(({ p50Ms }) => p50Ms)),
    cpuMicros: ((after.cpuMs - before.cpuMs) * 1_000) / requests,
    redisMicros: ((after.redisMs - before.redisMs) * 1_000) / requests,
    commands: ((after.commands - before.commands) * 1_000) / requests,
  };
}

async function countIncrements(redis: Redis): Promise<number> {
  const stats = String(await redisCommand(redis, 'INFO', 'commandstats'));
  return Number(/^cmdstat_incrby:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
}

function toCells(results: readonly Measured[], without: readonly Measured[] = []): string[] {
  const each = (of: readonly Measured[], field: keyof Measured) => of.map((result) => result[field]);
  const middle = (field: keyof Measured) => median(each(results, field));
  return [
    formatCount(middle('perSecond')),
    formatRatio(each(results, 'perSecond'), each(without, 'perSecond')),
    ...[middle('cpuMicros'), middle('redisMicros')].map((micros) => micros.toFixed(1)),
    middle('commands').toFixed(1),
    middle('p50Ms').toFixed(2),
  ];
}
