import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { withTemporaryFolder } from '@tollgate/testkit/folders';
import { findBinary, type ServerProcess, startServerProcess } from '@tollgate/testkit/processes';
import { fetchText, startHttpServer, startService } from '@tollgate/testkit/services';
import { createAdmin } from './admin.ts';
import { movePorts, type Ports } from './options.ts';

export interface PartContext {
  readonly ports: Ports;
  readonly folder: string;
  readonly nodePath: string;
  /** The folder that says who may call the application, and how much. */
  readonly policies: { readonly path: string };
  /** Signs every token. */
  readonly jwtSecret: string;
  /** Aborts when the demo stops, also while a part starts. */
  readonly signal: AbortSignal;
}

/** A part that answers. */
export interface RunningPart {
  /** Completes the line that says it is ready: what it is, where it listens. */
  readonly detail: string;
  /** False once it has ended by itself. */
  isRunning(): boolean;
  /** The log so far. */
  logs(): string;
  /** Idempotent. */
  stop(): Promise<void>;
}

export interface Part {
  /** Completes "starting …". */
  readonly name: string;
  /** Advice for a part that does not start, or ends by itself. */
  readonly hint: string;
  /** Resolves when it answers. Throws, with its output in the message, when that takes too long. */
  start(context: PartContext): Promise<RunningPart>;
}

/** Their paths are resolved against the external URL, which would lose its own path. */
const linksInMails = ['INVITE', 'CONFIRMATION', 'RECOVERY', 'EMAIL_CHANGE'];

/** services/auth with a mailbox instead of mail. */
export const auth: Part = {
  name: 'the auth server',
  hint: 'Its last lines are above. They name the setting, port or file where one is at fault.',
  async start(context) {
    const { ports } = context;
    const server = await startAuth(context, authSettings(ports));
    const detail = `HTTP ${ports.authHttp}, ext_authz ${ports.authGrpc}, embedded PostgreSQL`;
    return { ...server, detail };
  },
};

/** Starts services/auth behind Envoy, in development mode with a PostgreSQL of its own. */
export function startAuth(
  { ports, nodePath, jwtSecret, signal }: PartContext,
  settings: Readonly<Record<string, string>>,
): Promise<ServerProcess> {
  // Not in the demo's own folder: PostgreSQL runs as a user other than root, who must reach its
  // files.
  return withTemporaryFolder((folder) =>
    startService('auth', {
      nodePath,
      signal,
      settings: {
        SVC_MODE: 'development',
        SVC_DEVELOPMENT_FOLDER: folder,
        PORT: String(ports.authHttp),
        SVC_JWT_SECRET: jwtSecret,
        SVC_SECURITY_TRUSTED_PROXIES: 'loopback',
        SVC_EXT_AUTHZ_GRPC_PORT: String(ports.authGrpc),
        // Envoy asks over gRPC here; the other variant needs a port all the same.
        SVC_EXT_AUTHZ_HTTP_PORT: '0',
        SVC_EXT_AUTHZ_POLICY_SERVER: `127.0.0.1:${ports.xdsGrpc}`,
        SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: `127.0.0.1:${ports.limiterGrpc}`,
        // The default of 20 ms can be too short while everything starts on one machine.
        SVC_EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '5s',
        ...settings,
      },
      readyUrl: `http://127.0.0.1:${ports.authHttp}/ready`,
    }),
  );
}

function authSettings(ports: Ports): Record<string, string> {
  const gateway = `http://127.0.0.1:${ports.envoy}`;
  return {
    // Shown in the terminal: policies in force, and sign-ins.
    LOG_LEVEL: 'info',
    // Users reach it through Envoy, and links in mails lead there.
    SVC_API_EXTERNAL_URL: `${gateway}/auth`,
    ...Object.fromEntries(linksInMails.map((kind) => [`SVC_MAILER_URLPATHS_${kind}`, '/auth/verify'])),
    SVC_SITE_URL: `${gateway}/catalogue`,
    SVC_API_KEYS_ENABLED: 'true',
    SVC_ORGANIZATIONS_ENABLED: 'true',
  };
}

const bootstrapFile = resolve(import.meta.dirname, 'envoy.yaml');

/** A real Envoy with hack/demo/envoy.yaml. */
export const envoy: Part = {
  name: 'Envoy',
  hint: 'Its last lines are above. If it is missing or broken, sh hack/setup.sh demo fetches it.',
  async start({ ports, folder, signal }) {
    const admin = `http://127.0.0.1:${ports.envoyAdmin}`;
    const configFile = join(folder, 'envoy.yaml');
    await writeFile(configFile, movePorts(await readFile(bootstrapFile, 'utf8'), ports));
    let version = '';
    const server = await startServerProcess({
      command: findBinary('envoy'),
      args: [
        ...['--config-path', configFile, '--log-level', 'warning', '--concurrency', '1'],
        // Several demos may run on one machine.
        '--disable-hot-restart',
      ],
      ready: async () => {
        if (signal.aborted) return;
        await fetchText(`${admin}/ready`);
        version = versionIn(await fetchText(`${admin}/server_info`));
      },
    });
    const detail = `${version}, http://127.0.0.1:${ports.envoy}, admin ${ports.envoyAdmin}`;
    return { ...server, detail };
  },
};

/** From `"version": "<commit>/1.40.0/Clean/RELEASE/BoringSSL"`. */
function versionIn(serverInfo: string): string {
  return serverInfo.match(/"version": ?"[^/"]*\/([^/"]+)\//)?.[1] ?? 'unknown version';
}

/** services/ratelimit with counters in memory, and the limits of policies from the xDS server. */
export const limiter: Part = {
  name: 'the rate limit service',
  hint: 'Its last lines are above. They name the setting, port or server where one is at fault.',
  async start({ ports, nodePath, signal }) {
    const server = await startService('ratelimit', {
      nodePath,
      signal,
      settings: limiterSettings(ports),
      readyUrl: `http://127.0.0.1:${ports.limiterHttp}/healthcheck`,
    });
    const detail = `HTTP ${ports.limiterHttp}, gRPC ${ports.limiterGrpc}, debug ${ports.limiterDebug}`;
    return { ...server, detail };
  },
};

function limiterSettings(ports: Ports): Record<string, string> {
  return {
    HOST: '127.0.0.1',
    PORT: String(ports.limiterHttp),
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: String(ports.limiterGrpc),
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: String(ports.limiterDebug),
    LOG_LEVEL: 'warn',
    BACKEND_TYPE: 'memory',
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${ports.xdsGrpc}`,
    CONFIG_GRPC_XDS_NODE_ID: 'demo',
    LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
    // There is no statsd here; the debug port has the statistics.
    DISABLE_STATS: 'true',
  };
}

const shopEntryFile = resolve(import.meta.dirname, 'shop.ts');

/** The application behind Envoy, with an account of its own at the auth server. */
export const shop: Part = {
  name: 'the shop',
  hint: 'It is a few lines in hack/demo/shop.ts; its last lines are above.',
  async start({ ports, nodePath, jwtSecret, signal }) {
    const account = { email: 'shop@example.com', password: crypto.randomUUID() };
    const admin = createAdmin({ url: `http://127.0.0.1:${ports.authHttp}`, jwtSecret });
    await admin.createUser({ ...account, role: 'service' });
    const server = await startHttpServer([nodePath, shopEntryFile], {
      signal,
      settings: {
        PORT: String(ports.shop),
        GATEWAY_URL: `http://127.0.0.1:${ports.envoy}`,
        SHOP_EMAIL: account.email,
        SHOP_PASSWORD: account.password,
      },
      readyUrl: `http://127.0.0.1:${ports.shop}/health`,
    });
    return { ...server, detail: `http://127.0.0.1:${ports.shop}, account ${account.email}` };
  },
};

/** services/xds over the manifests of the demo. */
export const xds: Part = {
  name: 'the xDS server',
  hint: 'Its last lines are above. They name the setting, port or manifest where one is at fault.',
  async start({ ports, policies, nodePath, signal }) {
    const server = await startService('xds', {
      nodePath,
      signal,
      settings: {
        XDS_SOURCE: 'folder',
        XDS_FOLDER: policies.path,
        XDS_GRPC_HOST: '127.0.0.1',
        XDS_GRPC_PORT: String(ports.xdsGrpc),
        XDS_ADMIN_HOST: '127.0.0.1',
        XDS_ADMIN_PORT: String(ports.xdsAdmin),
        // Shown in the terminal: edits that are served, and errors in them.
        LOG_LEVEL: 'info',
      },
      readyUrl: `http://127.0.0.1:${ports.xdsAdmin}/readyz`,
    });
    return { ...server, detail: `ADS ${ports.xdsGrpc}, debug page http://127.0.0.1:${ports.xdsAdmin}/` };
  },
};
