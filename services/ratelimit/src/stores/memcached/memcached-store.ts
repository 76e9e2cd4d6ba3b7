import { createHash } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { crc32 } from 'node:zlib';
import { backoffDelays } from '@tollgate/kit/backoff';
import { FailureLog } from '@tollgate/kit/logger';
import type { CounterResult } from '../../algorithms/algorithm.ts';
import type { Settings } from '../../config/settings.ts';
import type { Context } from '../../context.ts';
import { backendFailure } from '../../errors.ts';
import { memcachedStatNames } from '../../metrics/names.ts';
import { createTlsStats } from '../../metrics/server-stats.ts';
import { Batch, type BatchCounter } from '../batch.ts';
import type { CounterStore, Hit } from '../counter-store.ts';
import { watchStoreTls } from '../store-tls.ts';
import { MemcachedStats, type ServerBatch, sendToServer } from './commands.ts';
import type { Exchange } from './connection.ts';
import {
  MemcachedServer,
  type MemcachedTls,
  type ResolveSrv,
  resolveServers,
  ServerList,
} from './servers.ts';

/**
 * Backoff of reconnects: short at first for a restart; the maximum limits how much later the
 * service recovers.
 */
const reconnect = { initialMs: 50, maxMs: 5_000, jitter: 0.5 };

/** Timeout and tries for each DNS server. */
const dns = { timeout: 2_000, tries: 2 };

/** Connections when MCACHE_MAX_IDLE_CONNS is 0. */
const defaultConnections = 2;

const resolveSrvRecords: ResolveSrv = (name) => new Resolver(dns).resolveSrv(name);

/** BACKEND_TYPE=memcache. */
export async function createMemcachedStore(
  settings: Settings,
  context: Context,
  resolveSrv: ResolveSrv = resolveSrvRecords,
): Promise<CounterStore> {
  const { stats, logger, random, nowSeconds } = context;
  const tls = await watchMemcachedTls(settings, context);
  const { memcacheHostPort, memcacheSrv, memcacheSrvRefreshMs } = settings;
  const servers = new ServerList({
    resolve: async () => (memcacheSrv === '' ? memcacheHostPort : resolveServers(memcacheSrv, resolveSrv)),
    open: (address) =>
      new MemcachedServer(address, {
        connections: settings.memcacheMaxIdleConnections || defaultConnections,
        timeoutMs: settings.memcacheTimeoutMs,
        tls: tls?.current,
        reconnectDelayMs: backoffDelays({ ...reconnect, random }),
        logger,
      }),
    refreshMs: memcacheSrv === '' ? 0 : memcacheSrvRefreshMs,
    logger,
  });
  stats.gauge(memcachedStatNames.servers, () => servers.current.length);
  stats.gauge(
    memcachedStatNames.unreachableServers,
    () => servers.current.filter((server) => !server.isReachable()).length,
  );
  const failures = new FailureLog({ logger, message: 'memcached failed to count, failing open' });
  return new MemcachedStore({
    servers,
    stats: new MemcachedStats(stats),
    nowSeconds,
    onFailure: (error, memcached) => failures.log(error, { memcached }),
    onClose: tls?.close,
  });
}

async function watchMemcachedTls(
  settings: Settings,
  { logger, stats }: Context,
): Promise<{ current(): MemcachedTls; close(): void } | undefined> {
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
    {
      logger,
      onCertificate: (validity) => createTlsStats(stats).setValidity('memcached_client', validity),
    },
  );
  const identity = settings.memcacheTlsSkipHostnameVerification
    ? { checkServerIdentity: () => undefined }
    : {};
  return { current: () => ({ ...current(), ...identity }), close };
}

interface MemcachedBackendOptions {
  readonly servers: ServerList;
  readonly stats: MemcachedStats;
  readonly nowSeconds: () => number;
  /** Called when a reachable server fails to count, or when too many hits are in flight. */
  readonly onFailure: (error: unknown, server?: string) => void;
  readonly onClose: (() => void) | undefined;
}

/**
 * 40,000 hits/s for the default timeout of half a second. A longer queue would slow down all
 * requests.
 */
const maxHitsInFlight = 20_000;

/**
 * Counters in one or more memcached; the key of a counter selects its server. Hits within a tick
 * are batched, and equal counters coalesced.
 *
 * Fails open: a counter that is unavailable counts as new, because memcached may evict counters at
 * any time and is not for limits that must hold. `take` and `peek` never reject.
 */
class MemcachedStore implements CounterStore {
  readonly #options: MemcachedBackendOptions;
  #collecting = new Batch();
  #scheduled: boolean = false;
  #hitsInFlight = 0;

  constructor(options: MemcachedBackendOptions) {
    this.#options = options;
  }

  take(hits: readonly Hit[]): Promise<readonly CounterResult[]> {
    return this.#collect(hits, 'take');
  }

  peek(hits: readonly Hit[]): Promise<readonly CounterResult[]> {
    return this.#collect(hits, 'peek');
  }

  async start({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const { servers } = this.#options;
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

  async close(): Promise<void> {
    this.#options.onClose?.();
    this.#flush();
    await this.#options.servers.close();
  }

  async #collect(hits: readonly Hit[], method: 'take' | 'peek'): Promise<readonly CounterResult[]> {
    if (this.#hitsInFlight + hits.length > maxHitsInFlight) {
      this.#options.onFailure(backendFailure('too many requests are waiting for memcached'));
      return this.#failOpen(hits, method);
    }
    this.#schedule();
    this.#hitsInFlight += hits.length;
    const results = await this.#collecting.join(hits, method);
    this.#hitsInFlight -= hits.length;
    return results;
  }

  #failOpen(hits: readonly Hit[], method: 'take' | 'peek'): Promise<readonly CounterResult[]> {
    const batch = new Batch();
    const results = batch.join(hits, method);
    for (const counter of batch.counters()) {
      this.#settleAsNew(batch, counter);
    }
    return results;
  }

  #schedule(): void {
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.#flush());
    }
  }

  #flush(): void {
    const batch = this.#collecting;
    this.#collecting = new Batch();
    this.#scheduled = false;
    for (const [server, part] of groupByServer(batch, this.#options.servers.current)) {
      void this.#send(batch, server, part);
    }
  }

  async #send(batch: Batch, server: MemcachedServer | undefined, part: ServerBatch): Promise<void> {
    const { stats, nowSeconds, onFailure } = this.#options;
    const exchange: Exchange = (driver, toFailure) =>
      sendToServer(driver, part, {
        stats,
        nowSeconds,
        settle: (counter, count) => batch.settle(counter, count),
        fail: (counter, error) => {
          onFailure(toFailure(error), server?.name);
          this.#settleAsNew(batch, counter);
        },
      });
    const sent = await server?.run(exchange, stats.exchanges);
    if (sent !== true) {
      stats.exchanges.fail('unavailable');
      for (const { counter } of [...part.reads, ...part.adds]) this.#settleAsNew(batch, counter);
    }
  }

  #settleAsNew(batch: Batch, counter: BatchCounter): void {
    const hits = Math.max(0, counter.addend);
    this.#options.stats.uncountedHits.value += hits;
    batch.settle(counter, hits);
  }
}

/** Groups counters by their server. Counters without hits to add are only read. */
function groupByServer(
  batch: Batch,
  servers: readonly MemcachedServer[],
): Map<MemcachedServer | undefined, ServerBatch> {
  const parts = new Map<MemcachedServer | undefined, ServerBatch>();
  for (const counter of batch.counters()) {
    const key = toStoredKey(counter.key);
    // The choice is that of envoyproxy/ratelimit, so that both find the counters of each other.
    const server = servers.length > 1 ? servers[crc32(key) % servers.length] : servers[0];
    const part = parts.get(server) ?? { reads: [], adds: [] };
    parts.set(server, part);
    part[counter.addend === 0 ? 'reads' : 'adds'].push({ key, counter });
  }
  return parts;
}

/** Longest key of memcached, in bytes. */
const maxKeyBytes = 250;

/** Bytes that end a key or a command in memcached's protocol. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this matches
const invalidInKey = /[\u0000-\u0020\u007f]/;

/**
 * The counter key, or its hash where memcached does not accept it. Clients choose the values in
 * keys, and an invalid one must not evade a limit.
 */
function toStoredKey(key: string): string {
  const valid = Buffer.byteLength(key) <= maxKeyBytes && !invalidInKey.test(key) && key !== '';
  return valid ? key : `tollgate_sha256_${createHash('sha256').update(key).digest('hex')}`;
}
