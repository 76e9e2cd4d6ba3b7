import type { ConnectionOptions } from 'node:tls';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import { compareText, hostAndPort } from '@tollgate/kit/text';
import { createNode, type MemcacheNode } from 'memcache';
import { parseServerAddress, type ServerAddress } from '../../config/memcached-addresses.ts';
import type { StoreStats } from '../../metrics/store-stats.ts';
import { Connection, type Exchange } from './connection.ts';

/** Options of `tls.connect` besides the address. */
export type MemcachedTls = Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'checkServerIdentity'>;

export interface ServerOptions {
  readonly connections: number;
  /** Limit of each exchange, milliseconds. */
  readonly timeoutMs: number;
  /** TLS of new connections; undefined for plaintext. */
  readonly tls: (() => MemcachedTls) | undefined;
  /** Backoff of one connection, milliseconds. */
  readonly reconnectDelayMs: (attempt: number) => number;
  readonly logger: Logger;
}

/**
 * The driver closes connections that are idle for this long: the longest time of a timer, 24 days.
 */
const idleTimeoutMs = 2 ** 31 - 1;

/** One memcached. Logs once when it becomes unreachable, and once when it recovers. */
export class MemcachedServer {
  /** `host:port`. */
  readonly name: string;
  readonly #connections: readonly Connection[];
  readonly #logger: Logger;
  #unreachable: boolean = false;

  constructor(address: ServerAddress, options: ServerOptions) {
    const { connections, timeoutMs, tls, reconnectDelayMs, logger } = options;
    this.name = hostAndPort(address.host, address.port);
    this.#logger = logger;
    const hooks = {
      open: () => openDriver(address, tls?.()),
      reconnectDelayMs,
      onConnected: () => this.#onConnected(),
      onFailed: (error: Error) => this.#onFailed(error),
    };
    this.#connections = Array.from({ length: connections }, () => new Connection(hooks, timeoutMs));
  }

  isReachable(): boolean {
    return this.#connections.some(({ isConnected }) => isConnected);
  }

  /**
   * Runs an exchange on the least busy connection; false, without running it, when there is none.
   */
  async run(exchange: Exchange, stats: StoreStats): Promise<boolean> {
    const [first, ...others] = this.#connections.filter(({ isConnected }) => isConnected);
    if (first === undefined) return false;
    await others.reduce((least, one) => (one.load < least.load ? one : least), first).run(exchange, stats);
    return true;
  }

  /** Resolves when the first attempts to connect have succeeded or failed. */
  async start(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.start()));
  }

  /** Resolves when the running exchanges have ended; idempotent. */
  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  #onConnected(): void {
    if (this.#unreachable) this.#logger.warn({ memcached: this.name }, 'memcached reachable again');
    this.#unreachable = false;
  }

  #onFailed(err: Error): void {
    if (this.#unreachable || this.isReachable()) return;
    this.#unreachable = true;
    this.#logger.warn({ memcached: this.name, err }, 'memcached unreachable, failing open');
  }
}

function openDriver({ host, port }: ServerAddress, tls: MemcachedTls | undefined): MemcacheNode {
  return createNode(host, port, { timeout: idleTimeoutMs, ...(tls === undefined ? {} : { tls }) });
}

export interface ServerListOptions {
  /**
   * The names of the servers, `host:port`, in the order that decides which of them holds a counter.
   */
  readonly resolve: () => Promise<readonly string[]>;
  readonly open: (address: ServerAddress) => MemcachedServer;
  /** How often the servers are resolved again, milliseconds; 0 never. */
  readonly refreshMs: number;
  readonly logger: Logger;
}

export class ServerList {
  readonly #options: ServerListOptions;
  readonly #open = new Map<string, MemcachedServer>();
  #current: readonly MemcachedServer[] = [];
  #timer: NodeJS.Timeout | undefined;
  #closed: boolean = false;

  constructor(options: ServerListOptions) {
    this.#options = options;
  }

  /** Servers in their order; empty until started. */
  get current(): readonly MemcachedServer[] {
    return this.#current;
  }

  /**
   * Resolves the servers and connects; succeeds also when they are unreachable.
   *
   * @throws Error of `resolve`, or that a name is not an address.
   */
  async start(): Promise<void> {
    await this.#update();
    this.#updateLater();
  }

  /** Resolves when the running exchanges have ended; idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await Promise.all(Array.from(this.#open.keys(), (name) => this.#close(name)));
  }

  /** Servers that remain keep their connections. */
  async #update(): Promise<void> {
    const names = await this.#options.resolve();
    const added = new Map(
      names.filter((name) => !this.#open.has(name)).map((name) => [name, parseAddress(name)] as const),
    );
    if (this.#closed) return;
    for (const [name, address] of added) this.#open.set(name, this.#options.open(address));
    // Connected first, so that no hit is sent to a server that is still connecting.
    await Promise.all(Array.from(added.keys(), (name) => this.#open.get(name)?.start()));
    const removed = Array.from(this.#open.keys()).filter((name) => !names.includes(name));
    const isFirst = this.#current.length === 0;
    this.#current = names.flatMap((name) => this.#open.get(name) ?? []);
    if (!isFirst && added.size + removed.length > 0) {
      this.#options.logger.info({ servers: names }, 'memcached servers changed');
    }
    await Promise.all(removed.map((name) => this.#close(name)));
  }

  async #close(name: string): Promise<void> {
    const server = this.#open.get(name);
    this.#open.delete(name);
    await server?.close();
  }

  #updateLater(): void {
    const { refreshMs } = this.#options;
    if (refreshMs > 0 && !this.#closed) {
      this.#timer = setTimeout(() => this.#refresh(), refreshMs);
    }
  }

  async #refresh(): Promise<void> {
    try {
      await this.#update();
    } catch (err) {
      this.#options.logger.warn(
        { err },
        'could not resolve the memcached servers again, keeping the current ones',
      );
    }
    this.#updateLater();
  }
}

function parseAddress(name: string): ServerAddress {
  const address = parseServerAddress(name);
  if (address === undefined) {
    throw new Error(`${name} is not an address of a memcached`);
  }
  return address;
}

/** Resolves SRV records, as `dns.promises.Resolver` does. */
export type ResolveSrv = (
  name: string,
) => Promise<readonly { readonly name: string; readonly port: number }[]>;

/**
 * The servers of an SRV record, `host:port`, sorted as envoyproxy/ratelimit sorts them: by their
 * text with the trailing dot of the host name. The order decides which server holds a counter.
 *
 * @throws Error naming the record when it cannot be resolved or names no server.
 */
export async function resolveServers(srv: string, resolveSrv: ResolveSrv): Promise<readonly string[]> {
  const records = await resolve(srv, resolveSrv);
  const servers = records
    // A lone dot, which the resolver returns as an empty name, means that the service does not
    // exist (RFC 2782).
    .filter(({ name }) => name !== '')
    .map(({ name, port }) => ({ sortKey: `${name}.:${port}`, address: hostAndPort(name, port) }))
    .sort((a, b) => compareText(a.sortKey, b.sortKey))
    .map(({ address }) => address);
  if (servers.length === 0) {
    throw new Error(`the SRV record ${srv} (MCACHE_SRV) names no server`);
  }
  return servers;
}

async function resolve(srv: string, resolveSrv: ResolveSrv): ReturnType<ResolveSrv> {
  try {
    return await resolveSrv(srv);
  } catch (cause) {
    const reason = getErrorMessage(cause);
    throw new Error(`the SRV record ${srv} (MCACHE_SRV) could not be resolved: ${reason}`, { cause });
  }
}
