import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  fetchText,
  type ServerProcess,
  startHttpServer,
  startServerProcess,
} from '@tollgate/kit/server-process';
import { serviceKey } from '@tollgate/kit/service-key';
import { CommandFailure } from '../failure.ts';
import type { EnvoyProgram } from './envoy-program.ts';
import type { Part, StartOptions } from './platform.ts';
import type { Ports } from './ports.ts';

/** Options that all services of a platform on this machine share. */
export interface ServiceOptions {
  readonly ports: Ports;
  /** The folder with AccessPolicies: who may call the application, and how much. */
  readonly policiesFolder: string;
  /** Signs every token. */
  readonly jwtSecret: string;
  /** Token of the counter API. */
  readonly limiterToken: string;
  readonly auth: AuthOptions;
  /** Counters are kept in memory without one. */
  readonly redisUrl?: string | undefined;
}

interface AuthOptions {
  /** Where users reach the auth server. Links in mails lead there. */
  readonly externalUrl: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** The person who may sign in to the console. */
export interface Administrator {
  readonly email: string;
  readonly password: string;
}

/** An account that is as new as the database. */
export function newAdministrator(): Administrator {
  return { email: 'admin@example.com', password: randomBytes(9).toString('base64url') };
}

/** A role of the default of `SVC_JWT_ADMIN_ROLES`. */
const administratorRole = 'supabase_admin';

const servicesFolder = resolve(import.meta.dirname, '../../../services');
const loopback = '127.0.0.1';

function startService(
  name: 'auth' | 'console' | 'ratelimit' | 'xds',
  settings: Readonly<Record<string, string>>,
  { readyUrl, ...options }: StartOptions & { readonly readyUrl: string },
): Promise<ServerProcess> {
  const program = join(servicesFolder, name, 'src/main.ts');
  if (!existsSync(program))
    throw new CommandFailure(`services/${name} is not installed beside this command: run it in a checkout`);
  return startHttpServer([process.execPath, program], { settings, readyUrl, ...options });
}

/** services/xds over the folder with policies. */
export function xdsPart({ ports, policiesFolder }: ServiceOptions): Part {
  return {
    name: 'the xDS server',
    label: 'xds',
    hint: 'Its last lines are above. They name the setting, port or manifest where one is at fault.',
    async start(options) {
      const adminUrl = `http://${loopback}:${ports.xdsAdmin}`;
      const settings = {
        XDS_SOURCE: 'folder',
        XDS_FOLDER: policiesFolder,
        XDS_GRPC_HOST: loopback,
        XDS_GRPC_PORT: String(ports.xdsGrpc),
        XDS_ADMIN_HOST: loopback,
        XDS_ADMIN_PORT: String(ports.xdsAdmin),
        // Shown in the terminal: edits that are served, and errors in them.
        LOG_LEVEL: 'info',
      };
      const server = await startService('xds', settings, { ...options, readyUrl: `${adminUrl}/readyz` });
      return { ...server, detail: `ADS ${ports.xdsGrpc}, debug page ${adminUrl}/` };
    },
  };
}

/** services/ratelimit with the limits of policies from the xDS server. */
export function limiterPart(options: ServiceOptions): Part {
  const { ports, redisUrl } = options;
  return {
    name: 'the rate limit service',
    label: 'limiter',
    hint: 'Its last lines are above. They name the setting, port or server where one is at fault.',
    async start(start) {
      const readyUrl = `http://${loopback}:${ports.limiterHttp}/healthcheck`;
      const server = await startService('ratelimit', limiterSettings(options), { ...start, readyUrl });
      const counters = redisUrl === undefined ? 'counters in memory' : 'counters in Redis';
      const detail = `HTTP ${ports.limiterHttp}, gRPC ${ports.limiterGrpc}, debug ${ports.limiterDebug}, ${counters}`;
      return { ...server, detail };
    },
  };
}

function limiterSettings({
  ports,
  jwtSecret,
  limiterToken,
  redisUrl,
}: ServiceOptions): Record<string, string> {
  return {
    HOST: loopback,
    PORT: String(ports.limiterHttp),
    GRPC_HOST: loopback,
    GRPC_PORT: String(ports.limiterGrpc),
    DEBUG_HOST: loopback,
    DEBUG_PORT: String(ports.limiterDebug),
    ADMIN_HOST: loopback,
    ADMIN_PORT: String(ports.limiterAdmin),
    ADMIN_TOKEN: limiterToken,
    // Administrators at the console.
    ADMIN_KEYS_URL: `http://${loopback}:${ports.authHttp}`,
    ADMIN_KEYS_TOKEN: serviceKey(jwtSecret),
    LOG_LEVEL: 'warn',
    ...(redisUrl === undefined ? { BACKEND_TYPE: 'memory' } : { BACKEND_TYPE: 'redis', REDIS_URL: redisUrl }),
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: `${loopback}:${ports.xdsGrpc}`,
    CONFIG_GRPC_XDS_NODE_ID: 'local',
    LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
    // There is no statsd here; the console reads metrics.
    USE_PUSHSTATS: 'false',
    USE_PULLMETRICS: 'true',
    PULLMETRICS_ADDR: `${loopback}:${ports.limiterMetrics}`,
  };
}

/**
 * services/auth in development mode: with a PostgreSQL of its own, and a mailbox instead of mail.
 */
export function authPart(options: ServiceOptions): Part {
  const { ports } = options;
  return {
    name: 'the auth server',
    label: 'auth',
    hint: 'Its last lines are above. They name the setting, port or file where one is at fault.',
    async start(start) {
      // A folder of its own: PostgreSQL runs as a user other than root, who must reach its files.
      const folder = await mkdtemp(join(tmpdir(), 'tollgate-auth-'));
      const remove = () => rm(folder, { recursive: true, force: true, maxRetries: 3 });
      try {
        const readyUrl = `http://${loopback}:${ports.authHttp}/ready`;
        const onLine = (line: string) => {
          if (!isRoutine(line)) start.onLine(line);
        };
        const settings = authSettings(options, folder);
        const server = await startService('auth', settings, { ...start, onLine, readyUrl });
        const detail = `HTTP ${ports.authHttp}, ext_authz ${ports.authGrpc}, embedded PostgreSQL`;
        return { ...server, detail, stop: () => server.stop().then(remove) };
      } catch (error) {
        await remove();
        throw error;
      }
    },
  };
}

/** An open console asks every few seconds. Changes, sign-ins and refused requests are shown. */
function isRoutine(line: string): boolean {
  return (
    line.includes('msg="request completed"') &&
    / status=[23]/.test(line) &&
    !line.includes('auth_audit_event')
  );
}

function authSettings({ ports, jwtSecret, auth }: ServiceOptions, folder: string): Record<string, string> {
  return {
    SVC_MODE: 'development',
    SVC_DEVELOPMENT_FOLDER: folder,
    PORT: String(ports.authHttp),
    // Shown in the terminal: policies in force, and sign-ins.
    LOG_LEVEL: 'info',
    SVC_JWT_SECRET: jwtSecret,
    SVC_API_EXTERNAL_URL: auth.externalUrl,
    ...linkPaths(new URL(auth.externalUrl).pathname),
    SVC_SECURITY_TRUSTED_PROXIES: 'loopback',
    SVC_METRICS_ENABLED: 'true',
    SVC_METRICS_EXPORTER: 'pull',
    OTEL_EXPORTER_PULL_PORT: String(ports.authMetrics),
    SVC_EXT_AUTHZ_GRPC_PORT: String(ports.authGrpc),
    // Envoy asks over gRPC here; the other variant needs a port all the same.
    SVC_EXT_AUTHZ_HTTP_PORT: '0',
    SVC_EXT_AUTHZ_POLICY_SERVER: `${loopback}:${ports.xdsGrpc}`,
    SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: `${loopback}:${ports.limiterGrpc}`,
    // The default of 20 ms can be too short while everything starts on one machine.
    SVC_EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '5s',
    ...auth.settings,
  };
}

/** Where the console is in browsers. */
export function consoleUrl({ console: port }: Pick<Ports, 'console'>): string {
  return `http://${loopback}:${port}`;
}

/** Administrators sign in to the console and the command line at pages of the auth server. */
export function signInSettings(ports: Ports): Record<string, string> {
  return {
    SVC_PAGES_ENABLED: 'true',
    SVC_OAUTH_SERVER_ENABLED: 'true',
    SVC_OAUTH_SERVER_CONSOLE_URL: consoleUrl(ports),
    SVC_OAUTH_SERVER_CLI_ENABLED: 'true',
  };
}

/**
 * services/console, with a person who may sign in. It starts after the auth server, which has
 * {@link signInSettings}.
 */
export function consolePart(options: ServiceOptions, administrator: Administrator): Part {
  const { ports } = options;
  return {
    name: 'the console',
    label: 'console',
    hint: 'Its last lines are above. They name the setting or port where one is at fault.',
    async start(start) {
      await createAdministrator(options, administrator, start.signal);
      const readyUrl = `http://${loopback}:${ports.consoleAdmin}/readyz`;
      const server = await startService('console', consoleSettings(options), { ...start, readyUrl });
      return { ...server, detail: `${consoleUrl(ports)}, account ${administrator.email}` };
    },
  };
}

function consoleSettings({ ports, auth }: ServiceOptions): Record<string, string> {
  const xds = `http://${loopback}:${ports.xdsAdmin}`;
  const metricsPorts = [ports.authMetrics, ports.limiterMetrics, ports.xdsAdmin];
  return {
    CONSOLE_HOST: loopback,
    CONSOLE_PORT: String(ports.console),
    CONSOLE_ADMIN_HOST: loopback,
    CONSOLE_ADMIN_PORT: String(ports.consoleAdmin),
    CONSOLE_EXTERNAL_URL: consoleUrl(ports),
    CONSOLE_AUTH_ISSUER: auth.externalUrl,
    CONSOLE_AUTH_URL: `http://${loopback}:${ports.authHttp}`,
    CONSOLE_LIMITER_URLS: `http://${loopback}:${ports.limiterAdmin}`,
    CONSOLE_METRICS_URLS: metricsPorts.map((port) => `http://${loopback}:${port}/metrics`).join(),
    CONSOLE_XDS_URL: xds,
    LOG_LEVEL: 'warn',
  };
}

async function createAdministrator(
  { ports, jwtSecret }: ServiceOptions,
  administrator: Administrator,
  signal: AbortSignal,
): Promise<void> {
  const response = await fetch(`http://${loopback}:${ports.authHttp}/admin/users`, {
    method: 'POST',
    signal,
    headers: { authorization: `Bearer ${serviceKey(jwtSecret)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...administrator, role: administratorRole, email_confirm: true }),
  });
  if (!response.ok)
    throw new Error(`no account for the console: ${response.status} ${await response.text()}`);
}

/** Paths of links in mails are resolved against the external URL, which would lose its own path. */
function linkPaths(path: string): Record<string, string> {
  if (path === '/') return {};
  const kinds = ['INVITE', 'CONFIRMATION', 'RECOVERY', 'EMAIL_CHANGE'];
  return Object.fromEntries(kinds.map((kind) => [`SVC_MAILER_URLPATHS_${kind}`, `${path}/verify`]));
}

interface EnvoyOptions {
  readonly ports: Ports;
  readonly program: EnvoyProgram;
  /** Its bootstrap. */
  readonly configFile: string;
  readonly hint: string;
}

/** A real Envoy with that bootstrap. */
export function envoyPart({ ports, program, configFile, hint }: EnvoyOptions): Part {
  return {
    name: 'Envoy',
    label: 'envoy',
    hint,
    async start({ signal, onLine }) {
      const admin = `http://${loopback}:${ports.envoyAdmin}`;
      let version = '';
      const server = await startServerProcess({
        command: program.command,
        args: [
          ...program.args,
          ...['--config-path', configFile, '--log-level', 'warning', '--concurrency', '1'],
          // Several may run on one machine.
          '--disable-hot-restart',
        ],
        signal,
        onLine,
        ready: async () => {
          await fetchText(`${admin}/ready`);
          version = versionIn(await fetchText(`${admin}/server_info`));
        },
      });
      const detail = `${version}, http://${loopback}:${ports.envoy}, admin ${ports.envoyAdmin}`;
      return { ...server, detail };
    },
  };
}

/** From `"version": "<commit>/1.40.0/Clean/RELEASE/BoringSSL"`. */
function versionIn(serverInfo: string): string {
  return serverInfo.match(/"version": ?"[^/"]*\/([^/"]+)\//)?.[1] ?? 'unknown version';
}
