import { resolve } from 'node:path';
import { makeTextFolder } from '@tollgate/testkit/folders';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { startPostgres } from '@tollgate/testkit/postgres';
import { type ServerProcess, startServerProcess } from '@tollgate/testkit/processes';
import type { Redis } from '@tollgate/testkit/redis';
import { serviceKey } from '@tollgate/testkit/service-key';
import { freePort, sendTcp } from '@tollgate/testkit/tcp';
import type { Test } from 'tap';
import { domain } from './envoy-config.ts';
import { manifest } from './limits.ts';

/**
 * A service of ours, started as in production: a process of its own, configured by its environment
 * alone.
 */
function startService(
  name: 'auth' | 'ratelimit' | 'xds',
  settings: Readonly<Record<string, string>>,
  readyUrl: string,
): Promise<ServerProcess> {
  const entryFile = resolve(import.meta.dirname, `../../../services/${name}/src/main.ts`);
  const assignments = Object.entries(settings).map(([variable, value]) => `${variable}=${value}`);
  return startServerProcess({
    command: 'env',
    args: ['-i', ...assignments, process.execPath, entryFile],
    ready: async () => {
      const answer = await fetch(readyUrl, { signal: AbortSignal.timeout(10_000) });
      if (!answer.ok) throw new Error(`${readyUrl} answered ${answer.status}: ${await answer.text()}`);
    },
  });
}

export interface RestartableProcess extends ServerProcess {
  /** Starts it again where it was, after `stop` or `kill`. */
  restart(): Promise<void>;
}

/** A program that `start` can start repeatedly. All properties are those of the current process. */
async function startRestartable(start: () => Promise<ServerProcess>): Promise<RestartableProcess> {
  let server = await start();
  return {
    logs: () => server.logs(),
    isRunning: () => server.isRunning(),
    stop: () => server.stop(),
    kill: () => server.kill(),
    async restart() {
      server = await start();
    },
  };
}

export interface AuthProcess extends RestartableProcess {
  /** Of its API, without a slash at the end. */
  readonly url: string;
  /** Of its gRPC server for Envoy. */
  readonly extAuthzPort: number;
  /** Creates a user who has signed in. */
  signUp(email: string): Promise<SignedIn>;
  /** Changes a user as an administrator does. */
  change(userId: string, changes: Readonly<Record<string, unknown>>): Promise<void>;
  signOut(accessToken: string): Promise<void>;
}

interface SignedIn {
  readonly userId: string;
  readonly accessToken: string;
}

const jwtSecret = 'a secret of the end-to-end suite alone';

/** Migrations take a second on an idle machine. */
const answerTimeoutMs = 20_000;

/**
 * Starts a PostgreSQL with an empty database, and resolves to its URL. It is stopped when the test
 * ends.
 */
export async function startAuthDatabase(t: Test): Promise<string> {
  const server = await startPostgres();
  t.teardown(() => server.stop());
  return (await server.createDatabase()).url;
}

/**
 * Starts services/auth, which makes its schema where there is none. It is stopped when the test
 * ends.
 */
export async function startAuth(
  t: Test,
  databaseUrl: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<AuthProcess> {
  const [http, grpc] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${http}`;
  const server = await startRestartable(() =>
    startService(
      'auth',
      {
        PORT: String(http),
        SVC_API_HOST: '127.0.0.1',
        SVC_API_EXTERNAL_URL: url,
        SVC_SITE_URL: 'https://example.com',
        SVC_DB_DRIVER: 'postgres',
        SVC_DB_DATABASE_URL: databaseUrl,
        SVC_JWT_SECRET: jwtSecret,
        SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
        SVC_SMTP_HOST: '127.0.0.1',
        SVC_SMTP_PORT: '2525',
        SVC_MAILER_AUTOCONFIRM: 'true',
        SVC_EXT_AUTHZ_GRPC_PORT: String(grpc),
        // Envoy asks over gRPC.
        SVC_EXT_AUTHZ_HTTP_PORT: '0',
        LOG_LEVEL: 'warn',
        ...settings,
      },
      `${url}/ready`,
    ),
  );
  t.teardown(server.stop);

  /** @throws Error for any response other than 2xx. */
  async function call(
    method: string,
    path: string,
    { token, body }: { readonly token: string | undefined; readonly body?: unknown },
  ): Promise<unknown> {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(answerTimeoutMs),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  return {
    ...server,
    url,
    extAuthzPort: grpc,
    async signUp(email) {
      const body = { email, password: 'correct horse battery' };
      // Parsed boundary: the service's own JSON, of which two fields are looked at.
      const answer = (await call('POST', '/signup', { token: undefined, body })) as {
        access_token: string;
        user: { id: string };
      };
      return { userId: answer.user.id, accessToken: answer.access_token };
    },
    async change(userId, changes) {
      await call('PUT', `/admin/users/${userId}`, { token: serviceKey(jwtSecret), body: changes });
    },
    async signOut(accessToken) {
      await call('POST', '/logout', { token: accessToken });
    },
  };
}

/** A rate limit service that a test started; it follows an xDS server. */
export interface LimiterProcess extends RestartableProcess {
  /** `host:port` of its gRPC server. */
  readonly address: string;
  readonly grpcPort: number;
  /**
   * Asks for one descriptor, as Envoy's JSON would; answers the limit that was found and the code.
   */
  decide(domain: string, entries: Readonly<Record<string, string>>): Promise<Decision>;
  /** One line for each rule in force. */
  rules(): Promise<readonly string[]>;
}

interface Decision {
  readonly code: 'OK' | 'OVER_LIMIT';
  readonly requestsPerUnit: number | undefined;
}

/**
 * Starts services/ratelimit with its rules from `xdsAddress`, and counters in memory unless the
 * settings say otherwise.
 */
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
    async decide(domain, entries) {
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

export interface XdsProcess extends RestartableProcess {
  /** Of its ADS server, `127.0.0.1:port`. */
  readonly address: string;
  readonly adminUrl: string;
}

/** Starts services/xds on free ports and waits until it serves. */
export async function startXds(settings: Readonly<Record<string, string>>): Promise<XdsProcess> {
  const grpcPort = await freePort();
  const adminPort = await freePort();
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const server = await startRestartable(() =>
    startService(
      'xds',
      {
        XDS_GRPC_HOST: '127.0.0.1',
        XDS_GRPC_PORT: String(grpcPort),
        XDS_ADMIN_HOST: '127.0.0.1',
        XDS_ADMIN_PORT: String(adminPort),
        ...settings,
      },
      `${adminUrl}/readyz`,
    ),
  );
  return { ...server, address: `127.0.0.1:${grpcPort}`, adminUrl };
}

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
    // An xDS server that is away is looked for often.
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
    ...settings,
  });
  t.teardown(limiter.stop);
  return limiter;
}

const sum = `local n = 0 for _, key in ipairs(redis.call('keys', '*')) do n = n + redis.call('get', key) end return n`;

/** The hits in all counters of a Redis together. */
export async function countedHits({ host, port }: Redis): Promise<number> {
  const answer = await sendTcp(`EVAL "${sum}" 0\r\n`, { host, port });
  const [, digits] = answer.match(/^:(\d+)\r\n$/) ?? [];
  if (digits === undefined) throw new Error(`Redis answered ${answer}`);
  return Number(digits);
}

/**
 * Lets Redis be silent for a while, as one whose machine hangs: it takes what it is sent and
 * answers nothing.
 */
export async function silence({ host, port }: Redis, durationMs: number): Promise<void> {
  const answer = await sendTcp(`CLIENT PAUSE ${durationMs} ALL\r\n`, { host, port });
  if (answer !== '+OK\r\n') throw new Error(`Redis answered ${answer}`);
}

/** An xDS server whose rules a test writes. */
export interface FolderXds extends XdsProcess {
  /** Sets the requests a year that each tenant has. */
  allow(requestsPerYear: number): void;
}

/**
 * Starts an xDS server of a folder in which each tenant has so many requests a year. It is
 * stopped when the test ends.
 */
export async function startFolderXds(t: Test, requestsPerYear: number): Promise<FolderXds> {
  const folder = makeTextFolder(t);
  const allow = (tenant: number) =>
    folder.write('tenants.json', manifest({ name: 'tenants', domain, unit: 'Year', limits: { tenant } }));
  allow(requestsPerYear);
  const xds = await startXds({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  t.teardown(xds.stop);
  return { ...xds, allow };
}

/**
 * Starts an xDS server of a cluster, with an election that is quick. It is stopped when the
 * test ends.
 */
export function startReplica(t: Test, kube: KubeApiserver, name: string): Promise<XdsProcess> {
  const started = startXds({
    XDS_SOURCE: 'kubernetes',
    KUBECONFIG: kube.kubeconfigFile,
    POD_NAME: name,
    XDS_LEASE_NAMESPACE: 'default',
    XDS_LEASE_DURATION: '3s',
    XDS_LEASE_RENEW_DEADLINE: '2s',
    XDS_LEASE_RETRY_PERIOD: '500ms',
    XDS_STATUS_DEBOUNCE: '100ms',
    // As long as a busy machine may take to see that a domain is kept.
    XDS_DOMAIN_GRACE_PERIOD: '5s',
  });
  t.teardown(async () => (await started).stop());
  return started;
}
