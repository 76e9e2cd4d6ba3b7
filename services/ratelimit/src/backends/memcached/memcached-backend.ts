import { createHash } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import type { ConnectionOptions } from 'node:tls';
import { crc32 } from 'node:zlib';
import { backoffDelays } from '@tollgate/kit/backoff';
import { FailureLog } from '@tollgate/kit/logger';
import type { Settings } from '../../config/settings.ts';
import { backendFailure } from '../../errors.ts';
import { memcachedStatNames } from '../../stats/names.ts';
import { createTlsStats } from '../../stats/server-stats.ts';
import { type Batch, type BatchCounter, createBatch } from '../batch.ts';
import type { BackendDeps, BackendModule, CounterBackend, CounterHit } from '../counter-backend.ts';
import { type StoreTls, type StoreTlsDeps, watchStoreTls } from '../store-tls.ts';
import { findServers, type ResolveSrv } from './addresses.ts';
import { countOnServer, createMemcachedStats, type MemcachedStats, type ServerBatch } from './commands.ts';
import { createMemcachedServer, createServerList, type MemcachedServer, type ServerList } from './servers.ts';

/** The longest key that memcached takes, in bytes. */
const maxKeyBytes = 250;

/** Bytes that end a key or a command in memcached's protocol: control characters and the blank. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const unfit = /[\u0000-\u0020\u007f]/;

/**
 * The name under which memcached holds a counter: its key, or a hash of it where memcached could not take the key.
 * Clients choose the values in keys; one that is too long or holds a blank must not be a way around a limit.
 */
function storedKey(key: string): string {
  const fits = Buffer.byteLength(key) <= maxKeyBytes && !unfit.test(key) && key !== '';
  return fits ? key : `tollgate_sha256_${createHash('sha256').update(key).digest('hex')}`;
}

/** What the backend is made of. */
interface MemcachedBackendDeps {
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
function createMemcachedBackend(deps: MemcachedBackendDeps): CounterBackend {
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

/** What `tls.connect` takes besides the address. */
export type MemcachedTls = Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'checkServerIdentity'>;

/** The settings that say with which certificates memcached is spoken to. */
type MemcachedTlsSettings = Pick<
  Settings,
  | 'memcacheTls'
  | 'memcacheTlsCacert'
  | 'memcacheTlsClientCert'
  | 'memcacheTlsClientKey'
  | 'memcacheTlsSkipHostnameVerification'
>;

/**
 * Reads the files that the settings name, and follows them; undefined without TLS.
 *
 * @throws Error naming settings and file when they cannot be used.
 */
async function watchMemcachedTls(
  settings: MemcachedTlsSettings,
  deps: StoreTlsDeps,
): Promise<StoreTls<MemcachedTls> | undefined> {
  if (!settings.memcacheTls) {
    return undefined;
  }
  const { current, close } = await watchStoreTls(
    'MCACHE_TLS',
    {
      caFile: settings.memcacheTlsCacert,
      certFile: settings.memcacheTlsClientCert,
      keyFile: settings.memcacheTlsClientKey,
    },
    deps,
  );
  const identity = settings.memcacheTlsSkipHostnameVerification
    ? { checkServerIdentity: () => undefined }
    : {};
  return { current: () => ({ ...current(), ...identity }), close };
}

/** Pauses between attempts to connect again: the first is short for a restart, the last bounds how much later we are back. */
const reconnect = { initialMs: 50, maxMs: 5_000, jitter: 0.5 };

/** How often and how long each DNS server is asked. */
const dns = { timeout: 2_000, tries: 2 };

/** What MCACHE_MAX_IDLE_CONNS is when it is 0. */
const defaultConnections = 2;

/** Makes the module with a way to resolve SRV records. */
export function memcachedModule(resolveSrv: ResolveSrv): BackendModule {
  return {
    async create(settings, deps) {
      const { stats, logger } = deps;
      const tls = await watchMemcachedTls(settings, {
        logger,
        onCertificate: (validity) => createTlsStats(stats).setValidity('memcached_client', validity),
      });
      const servers = createServerList(
        {
          find: serverNames(settings, resolveSrv),
          open: (address) =>
            createMemcachedServer(
              address,
              { reconnectDelayMs: backoffDelays({ ...reconnect, random: deps.random }), logger },
              {
                connections: settings.memcacheMaxIdleConnections || defaultConnections,
                timeoutMs: settings.memcacheTimeoutMs,
                tls: tls?.current,
              },
            ),
          logger,
        },
        settings.memcacheSrv === '' ? 0 : settings.memcacheSrvRefreshMs,
      );
      stats.gauge(memcachedStatNames.servers, () => servers.current().length);
      stats.gauge(
        memcachedStatNames.unreachableServers,
        () => servers.current().filter((server) => !server.isReachable()).length,
      );
      const backend = createMemcachedBackend({
        servers,
        stats: createMemcachedStats(stats),
        nowSeconds: deps.nowSeconds,
        onFailure: failureLog(deps),
      });
      return {
        ...backend,
        async close() {
          tls?.close();
          await backend.close();
        },
      };
    },
  };
}

/** BACKEND_TYPE=memcache. */
export const memcachedBackend: BackendModule = memcachedModule((name) => new Resolver(dns).resolveSrv(name));

function serverNames(
  { memcacheSrv, memcacheHostPort }: Settings,
  resolveSrv: ResolveSrv,
): () => Promise<readonly string[]> {
  return memcacheSrv === ''
    ? () => Promise.resolve(memcacheHostPort)
    : () => findServers(memcacheSrv, resolveSrv);
}

function failureLog({ logger }: BackendDeps): (error: unknown, server?: string) => void {
  const failures = new FailureLog({ logger, message: 'memcached did not count; hits were let through' });
  return (error, memcached) => failures.log(error, { memcached });
}
