import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { watchdogArguments } from '@tollgate/kit/watchdog';
import { findBinaries } from './binaries.ts';
import { initializeCluster, type ServerAccount, serverAccount } from './initialize-cluster.ts';
import { clearLeftOverServer } from './left-over-server.ts';

/** Options of a PostgreSQL server. */
export type EmbeddedPostgresOptions = {
  /** Folder of the cluster (in `data`); created when absent. */
  readonly folder: string;
  /**
   * Password of the superuser, set at the first start; without one, all local users can connect.
   */
  readonly password?: string;
  /** False trades durability for speed, for tests. Default true. */
  readonly durable?: boolean;
  /** Default 100. */
  readonly maxConnections?: number;
  /** Further parameters of the server. */
  readonly parameters?: Readonly<Record<string, string>>;
};

/** A running PostgreSQL on the loopback address. */
export type EmbeddedPostgres = {
  readonly host: string;
  readonly port: number;
  /** Connection string of a database, with user and password. */
  url(database: string): string;
  /** Resolves when the server has ended. */
  readonly ended: Promise<void>;
  /** Fast shutdown: disconnects clients; committed data is on disk. Idempotent. */
  stop(): Promise<void>;
};

const host = '127.0.0.1';
const user = 'postgres';
/** Includes recovery after a crash. */
const startTimeoutMs = 60_000;
/** Another process rarely takes the free port first; three times in a row is another problem. */
const startAttempts = 3;
/** Maximum length of the output in errors. */
const maxOutputChars = 20_000;

/**
 * Starts a real PostgreSQL from npm on a free loopback port and waits until it answers. The cluster
 * is made at the first start; a server that a killed process left behind is ended first.
 *
 * @throws Error with the output of PostgreSQL when it does not start.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { folder, password } = options;
  const account = serverAccount();
  const { initdb, postgres } = await findBinaries();
  const cluster = await initializeCluster({ folder, initdb, user, password, account });
  await clearLeftOverServer(cluster);
  const { server, port } = await startServer((port) =>
    spawnServer(postgres, serverArguments(cluster, port, options), { ...account, cwd: folder }),
  );
  const ended = once(server, 'close').then(() => undefined);
  return {
    host,
    port,
    url: (database) =>
      `postgres://${user}${password === undefined ? '' : `:${encodeURIComponent(password)}`}@${host}:${port}/${database}`,
    ended,
    stop() {
      server.stdin?.destroy();
      return ended;
    },
  };
}

/** Retries when another process has taken the port meanwhile. */
async function startServer(
  spawnAt: (port: number) => ChildProcess,
): Promise<{ readonly server: ChildProcess; readonly port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const server = spawnAt(port);
    try {
      await waitUntilReady(server);
      return { server, port };
    } catch (error) {
      const taken = error instanceof Error && /address already in use/i.test(error.message);
      if (!taken || attempt === startAttempts) throw error;
    }
  }
}

function serverArguments(
  cluster: string,
  port: number,
  { durable = true, maxConnections = 100, parameters = {} }: EmbeddedPostgresOptions,
): string[] {
  const settings = {
    listen_addresses: host,
    unix_socket_directories: '',
    max_connections: maxConnections,
    lc_messages: 'C',
    ...(durable
      ? {}
      : {
          fsync: 'off',
          synchronous_commit: 'off',
          full_page_writes: 'off',
          autovacuum: 'off',
          wal_level: 'minimal',
          max_wal_senders: 0,
        }),
    ...parameters,
  };
  return [
    ...['-D', cluster, '-p', String(port)],
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
}

function spawnServer(
  postgres: string,
  args: readonly string[],
  options: Partial<ServerAccount> & { readonly cwd: string },
): ChildProcess {
  // A process group of its own: a Ctrl-C in the terminal reaches the parent first, which then shuts
  // down in order. SIGINT is the fast shutdown.
  return spawn('/bin/sh', watchdogArguments('INT', postgres, args), {
    ...options,
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe', 'ignore'],
  });
}

async function waitUntilReady(server: ChildProcess): Promise<void> {
  let output = '';
  const ready = Promise.withResolvers<void>();
  const fail = (why: string): void => ready.reject(new Error(`PostgreSQL ${why}. Its output:\n${output}`));
  server.stdin?.on('error', () => undefined);
  server.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    output = (output + chunk).slice(-maxOutputChars);
    if (/ready to accept (?:read-only )?connections/.test(output)) ready.resolve();
  });
  server.once('error', ready.reject);
  server.once('close', (code) => fail(`ended with code ${code}`));
  const timer = setTimeout(() => fail(`did not start within ${startTimeoutMs} ms`), startTimeoutMs);
  try {
    await ready.promise;
  } catch (error) {
    server.stdin?.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, host);
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new TypeError('a TCP server has an address');
  return address.port;
}
