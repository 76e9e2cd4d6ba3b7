import { resolve } from 'node:path';
import { type ServerProcess, startHttpServer } from '@tollgate/kit/server-process';
import { freePort, withFreePort } from './tcp.ts';

export { fetchText, startHttpServer } from '@tollgate/kit/server-process';

const services = resolve(import.meta.dirname, '../../../services');
const loopback = '127.0.0.1';

/** Environment variables of a service: nothing of this process's environment configures it. */
export type ServiceSettings = Readonly<Record<string, string>>;

/** How to run a service. */
interface ServiceOptions {
  readonly settings: ServiceSettings;
  /** Responds 2xx when the service is ready. */
  readonly readyUrl: string;
  /** Flags of Node. */
  readonly nodeFlags?: readonly string[] | undefined;
  /** Default: the Node that runs this. */
  readonly nodePath?: string | undefined;
  /** Ends the wait for `readyUrl`. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Starts a service of this repository as in production: a process configured by its environment
 * alone.
 *
 * @throws Error with its output when it does not start.
 */
function startService(name: 'auth' | 'ratelimit' | 'xds', options: ServiceOptions): Promise<ServerProcess> {
  const { nodePath = process.execPath, nodeFlags = [] } = options;
  const program = resolve(services, name, 'src/main.ts');
  return startHttpServer([nodePath, ...nodeFlags, program], options);
}

/** A service that can be started again on the same ports; all properties follow the process. */
export interface ServiceProcess extends ServerProcess {
  /** Starts it again after it has ended. @throws Error while it runs: there would be two. */
  restart(): Promise<void>;
}

async function startRestartable(start: () => Promise<ServerProcess>): Promise<ServiceProcess> {
  let server = await start();
  return {
    get pid() {
      return server.pid;
    },
    logs: () => server.logs(),
    get ended() {
      return server.ended;
    },
    isRunning: () => server.isRunning(),
    stop: () => server.stop(),
    kill: () => server.kill(),
    async restart() {
      if (server.isRunning()) throw new Error('the service is running: stop or kill it first');
      server = await start();
    },
  };
}

type RunOptions = Pick<ServiceOptions, 'nodeFlags'> & {
  /** Another executable with the settings of services/ratelimit. */
  readonly program?: string | undefined;
};

/** services/ratelimit. */
export interface RateLimitService extends ServiceProcess {
  /** Address of its gRPC server, `host:port`. */
  readonly address: string;
  readonly grpcPort: number;
  readonly httpUrl: string;
  readonly debugUrl: string;
}

/** Starts services/ratelimit on free ports, with counters in memory and without statistics. */
export function startRateLimitService(
  settings: ServiceSettings,
  { program, nodeFlags }: RunOptions = {},
): Promise<RateLimitService> {
  return withFreePort(async (grpcPort) => {
    const [httpPort, debugPort] = [await freePort(), await freePort()];
    const httpUrl = `http://${loopback}:${httpPort}`;
    const options = {
      nodeFlags,
      readyUrl: `${httpUrl}/healthcheck`,
      settings: {
        HOST: loopback,
        PORT: String(httpPort),
        GRPC_HOST: loopback,
        GRPC_PORT: String(grpcPort),
        DEBUG_HOST: loopback,
        DEBUG_PORT: String(debugPort),
        BACKEND_TYPE: 'memory',
        DISABLE_STATS: 'true',
        ...settings,
      },
    };
    const start = () =>
      program === undefined ? startService('ratelimit', options) : startHttpServer([program], options);
    const debugUrl = `http://${loopback}:${debugPort}`;
    const service = await startRestartable(start);
    return Object.assign(service, { address: `${loopback}:${grpcPort}`, grpcPort, httpUrl, debugUrl });
  });
}

/** services/auth. */
export interface AuthServer extends ServiceProcess {
  /** URL of its API, without a slash at the end. */
  readonly url: string;
  /** Address of its gRPC server for Envoy, `host:port`. */
  readonly extAuthzAddress: string;
  readonly extAuthzPort: number;
}

/** Secret of the tokens of `startAuthServer`. */
export const authServerSecret = 'a secret for tests and benchmarks, long enough for HS256';

/**
 * Starts services/auth on free ports; it migrates its database. Users are confirmed at once, so
 * that no mail is sent.
 */
export function startAuthServer(
  databaseUrl: string,
  settings: ServiceSettings = {},
  { nodeFlags }: RunOptions = {},
): Promise<AuthServer> {
  return withFreePort(async (port) => {
    const extAuthzPort = await freePort();
    const url = `http://${loopback}:${port}`;
    const options = {
      nodeFlags,
      readyUrl: `${url}/ready`,
      settings: {
        PORT: String(port),
        SVC_API_HOST: loopback,
        SVC_API_EXTERNAL_URL: url,
        SVC_SITE_URL: 'https://example.com',
        SVC_DB_DRIVER: 'postgres',
        SVC_DB_DATABASE_URL: databaseUrl,
        SVC_JWT_SECRET: authServerSecret,
        SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
        SVC_SMTP_HOST: loopback,
        SVC_SMTP_PORT: '2525',
        SVC_MAILER_AUTOCONFIRM: 'true',
        SVC_EXT_AUTHZ_GRPC_PORT: String(extAuthzPort),
        // Envoy calls it over gRPC.
        SVC_EXT_AUTHZ_HTTP_PORT: '0',
        // All load comes from this machine, and may refresh few sessions.
        SVC_RATE_LIMIT_UNKNOWN_CLIENTS: '0',
        SVC_RATE_LIMIT_UNKNOWN_SIGN_UPS: '0',
        SVC_RATE_LIMIT_REFRESHES_PER_SESSION: '1000000',
        LOG_LEVEL: 'warn',
        ...settings,
      },
    };
    const service = await startRestartable(() => startService('auth', options));
    return Object.assign(service, { url, extAuthzAddress: `${loopback}:${extAuthzPort}`, extAuthzPort });
  });
}

/** services/xds. */
export interface XdsServer extends ServiceProcess {
  /** Address of its ADS server, `host:port`. */
  readonly address: string;
  readonly adminUrl: string;
}

/** Starts services/xds on free ports, or with its ADS server on one that limiters already have. */
export function startXdsServer(
  settings: ServiceSettings,
  { nodeFlags, grpcPort }: RunOptions & { readonly grpcPort?: number } = {},
): Promise<XdsServer> {
  const start = async (grpcPort: number) => {
    const adminPort = await freePort();
    const adminUrl = `http://${loopback}:${adminPort}`;
    const options = {
      nodeFlags,
      readyUrl: `${adminUrl}/readyz`,
      settings: {
        XDS_GRPC_HOST: loopback,
        XDS_GRPC_PORT: String(grpcPort),
        XDS_ADMIN_HOST: loopback,
        XDS_ADMIN_PORT: String(adminPort),
        ...settings,
      },
    };
    const service = await startRestartable(() => startService('xds', options));
    return Object.assign(service, { address: `${loopback}:${grpcPort}`, adminUrl });
  };
  return grpcPort === undefined ? withFreePort(start) : start(grpcPort);
}
