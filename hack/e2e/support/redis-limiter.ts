import type { Redis } from '@tollgate/testkit/redis';
import type { Test } from 'tap';
import { type LimiterProcess, startLimiter } from './limiter-process.ts';
import type { XdsProcess } from './xds-process.ts';

/** Starts a limiter that counts in a Redis. It is stopped when the test ends. */
export async function startRedisLimiter(
  t: Test,
  { xds, redis }: { readonly xds: XdsProcess; readonly redis: Redis },
  settings: Readonly<Record<string, string>> = {},
): Promise<LimiterProcess> {
  const limiter = await startLimiter(xds.address, {
    BACKEND_TYPE: 'redis',
    KVSTORE_SOCKET_TYPE: 'tcp',
    KVSTORE_URL: redis.address,
    // A management server that is away is looked for often.
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
    ...settings,
  });
  t.teardown(limiter.stop);
  return limiter;
}
