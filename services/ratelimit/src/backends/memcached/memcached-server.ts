import type { Logger } from '@tollgate/kit/logger';
import { hostAndPort } from '@tollgate/kit/text';
import { createNode, type MemcacheNode } from 'memcache';
import type { MemcachedTls } from './memcached-tls.ts';
import type { ServerAddress } from './server-address.ts';
import { createServerConnection, type Exchange } from './server-connection.ts';

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
