import { setTimeout as delay } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import {
  type RateLimitService,
  type ServiceSettings,
  startRateLimitService,
  startXdsServer,
  type XdsServer,
} from '@tollgate/testkit/services';
import { shouldRateLimitPath } from '../limiter-service.ts';
import { monotonicMs, openCalls } from '../processes.ts';

const requestTimeoutMs = 5000;
const enforcedTimeoutMs = 30_000;

/** Time between a response and the next call of a probe. */
export const probeEveryMs = 1;

/** Starts services/xds; limiters may already have its `grpcPort`. */
export function startXds(
  settings: ServiceSettings,
  options: { readonly nodeFlags: readonly string[]; readonly grpcPort?: number },
): Promise<XdsServer> {
  // All limiters of the benchmark have one address.
  return startXdsServer({ XDS_GRPC_MAX_STREAMS_PER_PEER: '0', LOG_FORMAT: 'json', ...settings }, options);
}

/** The sum of a metric over its labels. */
export async function readMetric({ adminUrl }: XdsServer, name: string): Promise<number> {
  const response = await fetch(`${adminUrl}/metrics`, { signal: AbortSignal.timeout(requestTimeoutMs) });
  const sample = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm');
  const lines = [...(await response.text()).matchAll(sample)];
  return lines.reduce((sum, [, value]) => sum + Number(value), 0);
}

/**
 * Starts services/ratelimit with its rules from `xdsAddress`. It is ready once it has the first
 * ones.
 */
export function startXdsLimiter(
  xdsAddress: string,
  nodeId: string,
  nodeFlags: readonly string[],
): Promise<RateLimitService> {
  const settings = {
    LOG_FORMAT: 'json',
    LOG_LEVEL: 'info',
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: xdsAddress,
    CONFIG_GRPC_XDS_NODE_ID: nodeId,
    // Limiters that start before their xDS server must not add their backoff to what is
    // measured.
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '50ms',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '50ms',
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: '50ms',
  };
  return startRateLimitService(settings, { nodeFlags });
}

/** Calls a limiter, as Envoy does, to see which limit it enforces. */
export interface LimitProbe {
  /** Calls until the limit of `domain` is `userLimit`; returns the time, by `monotonicMs`. */
  waitForLimit(domain: string, userLimit: number): Promise<number>;
  close(): void;
}

export function openLimitProbe({ address }: RateLimitService): LimitProbe {
  const calls = openCalls(address);
  return {
    close: calls.close,
    async waitForLimit(domain, userLimit) {
      const descriptors = [{ entries: [{ key: 'user', value: 'anybody' }] }];
      const request = toBinary(
        RateLimitRequestSchema,
        create(RateLimitRequestSchema, { domain, descriptors }),
      );
      const deadline = monotonicMs() + enforcedTimeoutMs;
      for (;;) {
        const reply = fromBinary(RateLimitResponseSchema, await calls.call(shouldRateLimitPath, request));
        const found = reply.statuses[0]?.currentLimit?.requestsPerUnit;
        const now = monotonicMs();
        if (found === userLimit) return now;
        if (now > deadline)
          throw new Error(
            `the limiter enforces ${found} for ${domain} instead of ${userLimit} after an edit`,
          );
        await delay(probeEveryMs);
      }
    },
  };
}
