import { freePort } from '@tollgate/testkit/tcp';
import { type RestartableProcess, startRestartable } from './restartable-process.ts';
import { startService } from './start-service.ts';

/** A rate limit service that a test started; it follows a management server. */
export interface LimiterProcess extends RestartableProcess {
  /** `host:port` of its gRPC server. */
  readonly address: string;
  readonly grpcPort: number;
  /** Asks for one descriptor, as Envoy's JSON would; answers the limit that was found and the code. */
  ask(domain: string, entries: Readonly<Record<string, string>>): Promise<Decision>;
  /** One line for each rule in force. */
  rules(): Promise<readonly string[]>;
}

/** What the limiter said of one descriptor. */
interface Decision {
  readonly code: 'OK' | 'OVER_LIMIT';
  readonly requestsPerUnit: number | undefined;
}

/** Starts services/ratelimit with its rules from `xdsAddress`, and counters in memory unless the settings say otherwise. */
export async function startLimiter(
  xdsAddress: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<LimiterProcess> {
  const [http, grpc, debug] = [await freePort(), await freePort(), await freePort()];
  const url = `http://127.0.0.1:${http}`;
  const server = await startRestartable(() =>
    startService(
      'ratelimit',
      {
        HOST: '127.0.0.1',
        PORT: String(http),
        GRPC_HOST: '127.0.0.1',
        GRPC_PORT: String(grpc),
        DEBUG_HOST: '127.0.0.1',
        DEBUG_PORT: String(debug),
        BACKEND_TYPE: 'memory',
        DISABLE_STATS: 'true',
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        CONFIG_GRPC_XDS_SERVER_URL: xdsAddress,
        ...settings,
      },
      `${url}/healthcheck`,
    ),
  );
  return {
    ...server,
    address: `127.0.0.1:${grpc}`,
    grpcPort: grpc,
    async ask(domain, entries) {
      const descriptor = { entries: Object.entries(entries).map(([key, value]) => ({ key, value })) };
      const answer = await fetch(`${url}/json`, {
        method: 'POST',
        body: JSON.stringify({ domain, descriptors: [descriptor] }),
        signal: AbortSignal.timeout(20_000),
      });
      // Parsed boundary: the service's own JSON, of which two fields are looked at.
      const body = (await answer.json()) as {
        overallCode: Decision['code'];
        statuses: { currentLimit?: { requestsPerUnit?: number } }[];
      };
      const limit = body.statuses[0]?.currentLimit;
      return {
        code: body.overallCode,
        requestsPerUnit: limit === undefined ? undefined : (limit.requestsPerUnit ?? 0),
      };
    },
    async rules() {
      const answer = await fetch(`http://127.0.0.1:${debug}/rlconfig`, {
        signal: AbortSignal.timeout(20_000),
      });
      return (await answer.text()).split('\n').filter((line) => line !== '');
    },
  };
}
