import type { Logger } from '@tollgate/kit/logger';
import type { MemcachedServer } from './memcached-server.ts';
import { parseServerAddress, type ServerAddress } from './server-address.ts';

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
export function createServerList({ find, open, logger }: ServerListDeps, refreshMs: number): ServerList {
  let current: readonly MemcachedServer[] = [];
  let next: NodeJS.Timeout | undefined;
  let closed = false;

  /** Goes over to the servers that there are now; those that stay keep their connections. */
  async function goOver(): Promise<void> {
    const names = await find();
    const known = new Map(current.map((server) => [server.name, server]));
    const fresh = new Map<string, MemcachedServer>();
    const servers = names.map((name) => {
      const address = addressOf(name);
      const server = known.get(name) ?? fresh.get(name) ?? open(address);
      if (!known.has(name)) fresh.set(name, server);
      return server;
    });
    // Connected first, so that no hit meets a server that is only just being reached.
    await Promise.all(Array.from(fresh.values(), (server) => server.start()));
    const gone = current.filter((server) => !servers.includes(server));
    current = closed ? [] : servers;
    await Promise.all((closed ? servers : gone).map((server) => server.close()));
    if (next !== undefined && (gone.length > 0 || fresh.size > 0)) {
      logger.info({ servers: names }, 'the memcached servers have changed');
    }
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
      logger.warn(
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
      await Promise.all(current.map((server) => server.close()));
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
