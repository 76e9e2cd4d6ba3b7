import type { Logger } from '@tollgate/kit/logger';
import { hostAndPort } from '@tollgate/kit/text';
import { createNode, type MemcacheNode } from 'memcache';
import { parseServerAddress, type ServerAddress } from './addresses.ts';
import { createServerConnection, type Exchange } from './connection.ts';
import type { MemcachedTls } from './memcached-backend.ts';

/** What a server takes. */
export interface MemcachedServerDeps {
  /** Pause before the next attempt to connect, milliseconds. */
  readonly reconnectDelayMs: (attempt: number) => number;
  readonly logger: Logger;
}

/** How servers are spoken to. */
export interface MemcachedServerOptions {
  /** Connections to each server. */
  readonly connections: number;
  /** Bound on each exchange, milliseconds. */
  readonly timeoutMs: number;
  /** What a connection that is made now is made with; undefined for one without TLS. */
  readonly tls?: (() => MemcachedTls) | undefined;
}

/** One memcached. */
export interface MemcachedServer {
  /** `host:port`. */
  readonly name: string;
  readonly isReachable: () => boolean;
  /** Runs an exchange on the connection with the least to do; false, and nothing is run, when there is none. */
  run(exchange: Exchange): Promise<boolean>;
  /** Resolves when the first attempts to connect have succeeded or failed. */
  start(): Promise<void>;
  /** Resolves when the exchanges that are under way have ended; idempotent. */
  close(): Promise<void>;
}

/** The driver closes connections that were idle for so long: the longest time a timer can wait, 24 days. */
const idleTimeoutMs = 2 ** 31 - 1;

/** Makes a server that connects when started, and says once when it cannot be reached and once when it is back. */
export function createMemcachedServer(
  address: ServerAddress,
  { reconnectDelayMs, logger }: MemcachedServerDeps,
  { connections: size, timeoutMs, tls }: MemcachedServerOptions,
): MemcachedServer {
  const name = hostAndPort(address.host, address.port);
  let away = false;
  const connections = Array.from({ length: size }, () =>
    createServerConnection(
      {
        open: () => openDriver(address, tls?.()),
        reconnectDelayMs,
        onConnected() {
          if (away) logger.warn({ memcached: name }, 'memcached is back');
          away = false;
        },
        // A connection that is lost is worth a word only when there is no new one.
        onFailed(error) {
          if (away || isReachable()) return;
          away = true;
          logger.warn(
            { memcached: name, err: error },
            'memcached cannot be reached; its counters stop nobody',
          );
        },
      },
      timeoutMs,
    ),
  );
  const isReachable = (): boolean => connections.some((one) => one.isConnected());

  return {
    name,
    isReachable,
    async run(exchange) {
      const [first, ...others] = connections.filter((one) => one.isConnected());
      if (first === undefined) return false;
      await others.reduce((least, one) => (one.busy() < least.busy() ? one : least), first).run(exchange);
      return true;
    },
    async start() {
      await Promise.all(connections.map((one) => one.start()));
    },
    async close() {
      await Promise.all(connections.map((one) => one.close()));
    },
  };
}

function openDriver({ host, port }: ServerAddress, tls: MemcachedTls | undefined): MemcacheNode {
  return createNode(host, port, { timeout: idleTimeoutMs, ...(tls === undefined ? {} : { tls }) });
}

/** What the list takes. */
export interface ServerListDeps {
  /** Names of the servers, `host:port`, in the order that decides which of them holds a counter. */
  readonly find: () => Promise<readonly string[]>;
  readonly open: (address: ServerAddress) => MemcachedServer;
  readonly logger: Logger;
}

/** The servers as they are now. */
export interface ServerList {
  /** In their order; empty until started. */
  readonly current: () => readonly MemcachedServer[];
  /**
   * Finds the servers and connects; resolves also when they cannot be reached.
   *
   * @throws what `find` throws, or that it names no address.
   */
  start(): Promise<void>;
  /** Resolves when the exchanges that are under way have ended; idempotent. */
  close(): Promise<void>;
}

/** Makes the list. `refreshMs` is how often the servers are looked for again; 0 never. */
export function createServerList(deps: ServerListDeps, refreshMs: number): ServerList {
  /** All that are open, by name. */
  const open = new Map<string, MemcachedServer>();
  let current: readonly MemcachedServer[] = [];
  let next: NodeJS.Timeout | undefined;
  let closed = false;

  /** Goes over to the servers that there are now; those that stay keep their connections. */
  async function goOver(): Promise<void> {
    const names = await deps.find();
    const fresh = new Map(
      names.filter((name) => !open.has(name)).map((name) => [name, addressOf(name)] as const),
    );
    if (closed) return;
    for (const [name, address] of fresh) open.set(name, deps.open(address));
    // Connected first, so that no hit meets a server that is only just being reached.
    await Promise.all(Array.from(fresh.keys(), (name) => open.get(name)?.start()));
    const gone = Array.from(open.keys()).filter((name) => !names.includes(name));
    const isFirst = current.length === 0;
    current = names.flatMap((name) => open.get(name) ?? []);
    if (!isFirst && fresh.size + gone.length > 0) {
      deps.logger.info({ servers: names }, 'the memcached servers have changed');
    }
    await Promise.all(gone.map(closeOne));
  }

  async function closeOne(name: string): Promise<void> {
    const server = open.get(name);
    open.delete(name);
    await server?.close();
  }

  function refreshLater(): void {
    if (refreshMs > 0 && !closed) {
      next = setTimeout(refresh, refreshMs);
    }
  }

  async function refresh(): Promise<void> {
    try {
      await goOver();
    } catch (error) {
      deps.logger.warn(
        { err: error },
        'the memcached servers could not be looked up again; they stay as they were',
      );
    }
    refreshLater();
  }

  return {
    current: () => current,
    async start() {
      await goOver();
      refreshLater();
    },
    async close() {
      closed = true;
      clearTimeout(next);
      await Promise.all(Array.from(open.keys(), closeOne));
    },
  };
}

function addressOf(name: string): ServerAddress {
  const address = parseServerAddress(name);
  if (address === undefined) {
    throw new Error(`${name} is no address of a memcached`);
  }
  return address;
}
