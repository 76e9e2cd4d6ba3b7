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
