import { serviceKey } from '@tollgate/kit/service-key';
import { makeTextFolder } from '@tollgate/testkit/folders';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { startPostgres } from '@tollgate/testkit/postgres';
import { type Redis, startRedis } from '@tollgate/testkit/redis';
import {
  type AuthServer,
  authServerSecret,
  fetchText,
  type RateLimitService,
  type ServiceSettings,
  startAuthServer,
  startRateLimitService,
  startXdsServer,
  type XdsServer,
} from '@tollgate/testkit/services';
import { sendTcp } from '@tollgate/testkit/tcp';
import type { Test } from 'tap';
import { domain } from './envoy-config.ts';
import { manifest } from './limits.ts';
import { sendJson } from './requests.ts';

export interface AuthProcess extends AuthServer {
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
  settings: ServiceSettings = {},
): Promise<AuthProcess> {
  const server = await startAuthServer(databaseUrl, settings);
  t.teardown(server.stop);

  /** @throws Error for any response other than 2xx. */
  async function call(
    method: string,
    path: string,
    { token, body }: { readonly token: string | undefined; readonly body?: unknown },
  ): Promise<unknown> {
    const { status, text } = await sendJson(`${server.url}${path}`, { method, token, body });
    if (status >= 300) throw new Error(`${method} ${path} answered ${status}: ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  return Object.assign(server, {
    async signUp(email: string) {
      const body = { email, password: 'correct horse battery' };
      // Parsed boundary: the service's own JSON, of which two fields are looked at.
      const answer = (await call('POST', '/signup', { token: undefined, body })) as {
        access_token: string;
        user: { id: string };
      };
      return { userId: answer.user.id, accessToken: answer.access_token };
    },
    async change(userId: string, changes: Readonly<Record<string, unknown>>) {
      await call('PUT', `/admin/users/${userId}`, { token: serviceKey(authServerSecret), body: changes });
    },
    async signOut(accessToken: string) {
      await call('POST', '/logout', { token: accessToken });
    },
  });
}

/** A rate limit service that a test started; it follows an xDS server. */
export interface LimiterProcess extends RateLimitService {
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
  settings: ServiceSettings = {},
): Promise<LimiterProcess> {
  const service = await startRateLimitService({
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: xdsAddress,
    ...settings,
  });
  return Object.assign(service, {
    async decide(domain: string, entries: Readonly<Record<string, string>>): Promise<Decision> {
      const descriptor = { entries: Object.entries(entries).map(([key, value]) => ({ key, value })) };
      const answer = await fetch(`${service.httpUrl}/json`, {
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
      const text = await fetchText(`${service.debugUrl}/rlconfig`);
      return text.split('\n').filter((line) => line !== '');
    },
  });
}

/** Starts a limiter that counts in a Redis. It is stopped when the test ends. */
export async function startRedisLimiter(
  t: Test,
  { xds, redis }: { readonly xds: XdsServer; readonly redis: Redis },
  settings: ServiceSettings = {},
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
interface FolderXds extends XdsServer {
  /** Sets the requests a year that each tenant has. */
  allow(requestsPerYear: number): void;
}

async function startFolderXds(t: Test, requestsPerYear: number): Promise<FolderXds> {
  const folder = makeTextFolder(t);
  const allow = (tenant: number) =>
    folder.write('tenants.json', manifest({ name: 'tenants', domain, unit: 'Year', limits: { tenant } }));
  allow(requestsPerYear);
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  t.teardown(xds.stop);
  return Object.assign(xds, { allow });
}

/** Rules, counters and a limiter. */
export interface Limits {
  readonly redis: Redis;
  readonly xds: FolderXds;
  readonly limiter: LimiterProcess;
}

/**
 * Starts Redis, an xDS server with a limit for each tenant, and a limiter. They are stopped when
 * the test ends.
 */
export async function startLimits(
  t: Test,
  {
    requestsPerYear,
    settings = {},
  }: { readonly requestsPerYear: number; readonly settings?: ServiceSettings },
): Promise<Limits> {
  const [redis, xds] = await Promise.all([startRedis(), startFolderXds(t, requestsPerYear)]);
  t.teardown(redis.stop);
  return { redis, xds, limiter: await startRedisLimiter(t, { xds, redis }, settings) };
}

/**
 * Starts an xDS server of a cluster, with an election that is quick. It is stopped when the
 * test ends.
 */
export function startReplica(
  t: Test,
  kube: KubeApiserver,
  name: string,
  settings: ServiceSettings = {},
): Promise<XdsServer> {
  const started = startXdsServer({
    XDS_SOURCE: 'kubernetes',
    KUBECONFIG: kube.kubeconfigFile,
    POD_NAME: name,
    XDS_ANY_DOMAIN_NAMESPACES: '*',
    XDS_LEASE_NAMESPACE: 'default',
    XDS_LEASE_DURATION: '3s',
    XDS_LEASE_RENEW_DEADLINE: '2s',
    XDS_LEASE_RETRY_PERIOD: '500ms',
    XDS_STATUS_DEBOUNCE: '100ms',
    // As long as a busy machine may take to see that a domain is kept.
    XDS_DOMAIN_GRACE_PERIOD: '10s',
    ...settings,
  });
  t.teardown(async () => (await started).stop());
  return started;
}
