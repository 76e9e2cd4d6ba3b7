import { join } from 'node:path';
import { freePort } from '@tollgate/testkit/free-port';
import { withFreePort } from '@tollgate/testkit/with-free-port';
import { type NodeProcess, startNodeProcess } from '../node-process.ts';

/** A management server of the bench. */
export interface XdsService extends NodeProcess {
  /** Of its ADS server, `host:port`. */
  readonly address: string;
  /** The sum of a metric over its labels. */
  metric(name: string): Promise<number>;
}

/** A limiter of the bench. */
export interface LimiterService extends NodeProcess {
  readonly host: string;
  readonly grpcPort: number;
}

const loopback = '127.0.0.1';
const services = join(import.meta.dirname, '../../../services');

/** 10,000 objects are listed and compiled before a service is ready. */
const startTimeoutMs = 120_000;
const requestTimeoutMs = 5000;

/** Starts services/xds with the source that `settings` name and waits until it serves. */
export function startXds(
  settings: Readonly<Record<string, string>>,
  nodeFlags: readonly string[],
): Promise<XdsService> {
  return withFreePort(async (grpcPort) => startXdsOn(grpcPort, settings, nodeFlags));
}

/** Starts services/xds with its ADS server on a port that limiters know already. */
export async function startXdsOn(
  grpcPort: number,
  settings: Readonly<Record<string, string>>,
  nodeFlags: readonly string[],
): Promise<XdsService> {
  const adminUrl = `http://${loopback}:${await freePort()}`;
  const started = await startNodeProcess({
    program: join(services, 'xds/src/main.ts'),
    nodeFlags,
    env: {
      XDS_GRPC_HOST: loopback,
      XDS_GRPC_PORT: String(grpcPort),
      // All limiters of the bench have one address.
      XDS_GRPC_MAX_STREAMS_PER_PEER: '0',
      XDS_ADMIN_HOST: loopback,
      XDS_ADMIN_PORT: new URL(adminUrl).port,
      LOG_FORMAT: 'json',
      ...settings,
    },
    readyUrl: `${adminUrl}/readyz`,
    startTimeoutMs,
  });
  return {
    ...started,
    address: `${loopback}:${grpcPort}`,
    async metric(name) {
      const answer = await fetch(`${adminUrl}/metrics`, { signal: AbortSignal.timeout(requestTimeoutMs) });
      const sample = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm');
      const lines = [...(await answer.text()).matchAll(sample)];
      return lines.reduce((sum, [, value]) => sum + Number(value), 0);
    },
  };
}

/** Starts services/ratelimit with its rules from `xdsAddress`; resolves once it has the first ones. */
export function startLimiter(
  xdsAddress: string,
  nodeId: string,
  nodeFlags: readonly string[],
): Promise<LimiterService> {
  return withFreePort(async (grpcPort) => {
    const [httpPort, debugPort] = [await freePort(), await freePort()];
    const started = await startNodeProcess({
      program: join(services, 'ratelimit/src/main.ts'),
      nodeFlags,
      env: {
        HOST: loopback,
        PORT: String(httpPort),
        GRPC_HOST: loopback,
        GRPC_PORT: String(grpcPort),
        DEBUG_HOST: loopback,
        DEBUG_PORT: String(debugPort),
        BACKEND_TYPE: 'memory',
        USE_PUSHSTATS: 'false',
        LOG_FORMAT: 'json',
        LOG_LEVEL: 'info',
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        CONFIG_GRPC_XDS_SERVER_URL: xdsAddress,
        CONFIG_GRPC_XDS_NODE_ID: nodeId,
        // A limiter that came before its management server must not add its own patience to what is measured.
        CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '50ms',
        XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '50ms',
        XDS_CLIENT_BACKOFF_MAX_INTERVAL: '50ms',
      },
      readyUrl: `http://${loopback}:${httpPort}/healthcheck`,
      startTimeoutMs,
    });
    return { ...started, host: loopback, grpcPort };
  });
}
