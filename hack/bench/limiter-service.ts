import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { startRedis } from '@tollgate/testkit/redis';
import { startRateLimitService } from '@tollgate/testkit/services';
import { runGrpcLoad } from './grpc-load.ts';
import { openCalls, readProcessUsage } from './processes.ts';
import { type LoadResult, median } from './report.ts';
import { benchDomain, tenantCount, tenantName } from './rules-file.ts';

export const shouldRateLimitPath = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

export const connections = 8;
export const streams = 16;
/** Options of Node.js in the image (Dockerfile). */
export const imageNodeFlags = ['--max-semi-space-size=8'];

export type Backend = 'memory' | 'Redis';

export interface Limiter {
  readonly name: string;
  readonly isPeer: boolean;
  readonly backend: Backend;
  readonly address: string;
  readonly pid: number;
  readonly redisPid: number | undefined;
}

export async function startLimiter(
  backend: Backend,
  options: {
    /** Program of the peer. */
    readonly program: string | undefined;
    readonly nodeFlags: readonly string[];
    readonly runtimeRoot: string;
    readonly cleanup: AsyncDisposableStack;
  },
): Promise<Limiter> {
  const { program, nodeFlags, runtimeRoot, cleanup } = options;
  const settings = {
    RUNTIME_ROOT: runtimeRoot,
    RUNTIME_WATCH_ROOT: 'false',
    // Statistics are counted, and sent nowhere.
    DISABLE_STATS: 'false',
    USE_STATSD: 'false',
    LOG_LEVEL: 'error',
  };
  const redis = backend === 'memory' ? undefined : await startRedis();
  if (redis !== undefined) cleanup.defer(redis.stop);
  const counters =
    redis === undefined
      ? { BACKEND_TYPE: 'memory' }
      : { BACKEND_TYPE: 'redis', REDIS_SOCKET_TYPE: 'tcp', REDIS_URL: redis.address };
  const { address, pid, stop } = await startRateLimitService(
    { ...settings, ...counters },
    { program, nodeFlags },
  );
  cleanup.defer(stop);
  const isPeer = program !== undefined;
  return { name: isPeer ? 'peer' : backend, isPeer, backend, address, pid, redisPid: redis?.pid };
}

/** Different requests of two descriptors each: a user, and the user within a tenant. */
export function writeRequests(count: number): Uint8Array[] {
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
export async function checkDecision(address: string): Promise<void> {
  const calls = openCalls(address);
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

export function perSecond(results: readonly LoadResult[]): number {
  return median(results.map((result) => result.perSecond));
}

export interface Maximum extends LoadResult {
  readonly cpuMicros: number;
  readonly redisMicros: number | undefined;
  readonly rssBytes: number;
}

export async function measureMaximum(
  { address, pid, redisPid }: Limiter,
  load: Omit<Parameters<typeof runGrpcLoad>[0], 'address'>,
): Promise<Maximum> {
  const redisCpuMs = () => (redisPid === undefined ? undefined : readProcessUsage(redisPid).cpuMs);
  const before = { cpuMs: readProcessUsage(pid).cpuMs, redisMs: redisCpuMs() };
  const result = await runGrpcLoad({ ...load, address });
  const { cpuMs, rssBytes } = readProcessUsage(pid);
  const redisMs = redisCpuMs();
  const micros = (ms: number) => (ms * 1000) / result.requests;
  return {
    ...result,
    cpuMicros: micros(cpuMs - before.cpuMs),
    redisMicros: redisMs === undefined ? undefined : micros(redisMs - (before.redisMs ?? 0)),
    rssBytes,
  };
}
