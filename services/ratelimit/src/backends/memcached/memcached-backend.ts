import { crc32 } from 'node:zlib';
import { backendFailure } from '../../errors.ts';
import type { CounterBackend, CounterHit } from '../../ports/counter-backend.ts';
import { type Batch, type BatchCounter, createBatch } from '../batch.ts';
import { countOnServer, type ServerBatch } from './count-on-server.ts';
import type { MemcachedServer } from './memcached-server.ts';
import type { MemcachedStats } from './memcached-stats.ts';
import type { ServerList } from './server-list.ts';
import { storedKey } from './stored-key.ts';

/** What the backend is made of. */
export interface MemcachedBackendDeps {
  readonly servers: ServerList;
  readonly stats: MemcachedStats;
  /** Unix time in whole seconds. */
  readonly nowSeconds: () => number;
  /**
   * A server was asked and did not count, or was not even asked because too much is under way. Servers that cannot be
   * reached are told of elsewhere.
   */
  readonly onFailure: (error: unknown, server?: string) => void;
}

/**
 * Hits that may be under way: what 40,000 hits/s bring while servers use up all of their half a second. A longer queue
 * would slow down the driver for everybody.
 */
const maxHitsUnderWay = 20_000;

/**
 * Counters in one or more memcached, each counter in the one that its name leads to. Hits that arrive within a tick
 * travel together, equal counters as one.
 *
 * A counter that cannot be had stands at nothing: memcached forgets by design, so this backend never was a place for
 * limits that must hold, and requests are let through rather than refused. `add` and `read` never reject.
 */
export function createMemcachedBackend(deps: MemcachedBackendDeps): CounterBackend {
  const { servers, stats } = deps;
  let collecting = createBatch();
  let scheduled = false;
  let underWay = 0;

  async function collect(hits: readonly CounterHit[], method: 'add' | 'read'): Promise<readonly number[]> {
    if (underWay + hits.length > maxHitsUnderWay) {
      deps.onFailure(backendFailure('too many requests are waiting for memcached'));
      return letThrough(hits, method);
    }
    schedule();
    underWay += hits.length;
    const counts = await collecting[method](hits);
    underWay -= hits.length;
    return counts;
  }

  function letThrough(hits: readonly CounterHit[], method: 'add' | 'read'): Promise<readonly number[]> {
    const batch = createBatch();
    const counts = batch[method](hits);
    for (const counter of allOf(batch)) {
      asIfNew(batch, counter);
    }
    return counts;
  }

  function schedule(): void {
    if (!scheduled) {
      scheduled = true;
      setImmediate(flush);
    }
  }

  function flush(): void {
    const batch = collecting;
    collecting = createBatch();
    scheduled = false;
    for (const [server, part] of byServer(batch, servers.current())) {
      void send(batch, server, part);
    }
  }

  async function send(batch: Batch, server: MemcachedServer | undefined, part: ServerBatch): Promise<void> {
    const counted = await server?.run((driver, explain) =>
      countOnServer(driver, part, {
        stats,
        nowSeconds: deps.nowSeconds,
        settle: batch.settle,
        fail(counter, error) {
          deps.onFailure(explain(error), server.name);
          asIfNew(batch, counter);
        },
      }),
    );
    if (counted !== true) {
      for (const { counter } of [...part.reads, ...part.adds]) asIfNew(batch, counter);
    }
  }

  function asIfNew(batch: Batch, counter: BatchCounter): void {
    stats.uncountedHits.value += counter.addend;
    batch.settle(counter, counter.addend);
  }

  return {
    add: (hits) => collect(hits, 'add'),
    read: (hits) => collect(hits, 'read'),
    start: ({ signal } = {}) => startUnlessAborted(servers, signal),
    async close() {
      flush();
      await servers.close();
    },
  };
}

function allOf(batch: Batch): BatchCounter[] {
  return [...batch.reads.values(), ...batch.adds.values()];
}

/** Puts each counter to the server that holds it. Counters that nothing is added to are read only. */
function byServer(
  batch: Batch,
  servers: readonly MemcachedServer[],
): Map<MemcachedServer | undefined, ServerBatch> {
  const parts = new Map<MemcachedServer | undefined, ServerBatch>();
  for (const counter of allOf(batch)) {
    const key = storedKey(counter.key);
    // As envoyproxy/ratelimit has it, so that limiters of both kinds find each other's counters.
    const server = servers.length > 1 ? servers[crc32(key) % servers.length] : servers[0];
    const part = parts.get(server) ?? { reads: [], adds: [] };
    parts.set(server, part);
    part[counter.addend === 0 ? 'reads' : 'adds'].push({ key, counter });
  }
  return parts;
}

async function startUnlessAborted(servers: ServerList, signal: AbortSignal | undefined): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => {
    void servers.close();
    aborted.reject(backendFailure('stopped while connecting to memcached'));
  };
  signal?.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([servers.start(), aborted.promise]);
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}
