import { KeyQueue } from '@tollgate/kit/collections';
import { localCacheStatNames, statsNames } from '../metrics/names.ts';
import type { StatsRegistry } from '../metrics/registry.ts';

type LocalCacheMetrics = Record<(typeof localCacheStatNames)[number], number>;

/** Smaller sizes are raised to this, as in envoyproxy/ratelimit. */
const minSizeBytes = 512 * 1024;

const maxKeyBytes = 65_535;

/**
 * Cost of an entry besides its text: a Map slot, a string header and two numbers, rounded up from
 * what V8 uses.
 */
const entryOverheadBytes = 96;

interface CacheEntry {
  untilSeconds: number;
  usedAtSeconds: number;
}

/**
 * Counters that are over their limit, so that the store is not called for them. Evicts the least
 * recently used.
 */
export class LocalCache {
  readonly metrics: Readonly<LocalCacheMetrics>;
  readonly #metrics: LocalCacheMetrics = {
    evacuateCount: 0,
    expiredCount: 0,
    entryCount: 0,
    averageAccessTime: 0,
    hitCount: 0,
    missCount: 0,
    lookupCount: 0,
    overwriteCount: 0,
  };
  readonly #maxBytes: number;
  readonly #entries = new Map<string, CacheEntry>();
  readonly #leastRecentlyUsed = new KeyQueue();
  #forgets = 0;
  #bytes = 0;
  #accessTimeSum = 0;

  constructor(sizeBytes: number) {
    this.#maxBytes = Math.max(sizeBytes, minSizeBytes);
    this.metrics = this.#metrics;
  }

  has(key: string, nowSeconds: number): boolean {
    const metrics = this.#metrics;
    metrics.lookupCount += 1;
    const entry = this.#entries.get(key);
    if (entry !== undefined && entry.untilSeconds > nowSeconds) {
      metrics.hitCount += 1;
      this.#remove(key, entry);
      this.#insert(key, { untilSeconds: entry.untilSeconds, usedAtSeconds: nowSeconds });
      return true;
    }
    if (entry !== undefined) {
      this.#remove(key, entry);
      metrics.expiredCount += 1;
    }
    metrics.missCount += 1;
    return false;
  }

  /** Keeps `key` until `untilSeconds` (Unix time). Keys that are too long are ignored. */
  add(key: string, nowSeconds: number, untilSeconds: number): void {
    if (Buffer.byteLength(key) > maxKeyBytes) {
      return;
    }
    const known = this.#entries.get(key);
    if (known !== undefined) {
      this.#remove(key, known);
      this.#metrics.overwriteCount += 1;
    }
    this.#insert(key, { untilSeconds, usedAtSeconds: nowSeconds });
    this.#evict(nowSeconds);
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#remove(key, entry);
  }

  /**
   * How often counters were forgotten. When it has changed while the store was called, the result
   * may be older than the reset of its counter, and must not be added.
   */
  get forgets(): number {
    return this.#forgets;
  }

  /** Forgets counters that were reset. */
  forget(keys: readonly string[]): void {
    this.#forgets += 1;
    for (const key of keys) this.delete(key);
  }

  /** Forgets all counters whose keys begin with a text. */
  forgetByPrefix(prefix: string): void {
    this.forget([...this.#entries.keys()].filter((key) => key.startsWith(prefix)));
  }

  /** Registers the gauges `ratelimit.localcache.*`. */
  registerGauges(stats: StatsRegistry): void {
    for (const name of localCacheStatNames) {
      stats.gauge(`${statsNames.localCachePrefix}${name}`, () => this.#metrics[name]);
    }
  }

  #evict(nowSeconds: number): void {
    while (this.#bytes > this.#maxBytes) {
      const key = this.#leastRecentlyUsed.first();
      const entry = key === undefined ? undefined : this.#entries.get(key);
      if (key === undefined || entry === undefined) {
        return;
      }
      this.#remove(key, entry);
      this.#metrics[entry.untilSeconds <= nowSeconds ? 'expiredCount' : 'evacuateCount'] += 1;
    }
  }

  #remove(key: string, entry: CacheEntry): void {
    this.#entries.delete(key);
    this.#leastRecentlyUsed.delete(key);
    this.#resize(-getSize(key), -entry.usedAtSeconds);
  }

  #insert(key: string, entry: CacheEntry): void {
    this.#entries.set(key, entry);
    this.#leastRecentlyUsed.add(key);
    this.#resize(getSize(key), entry.usedAtSeconds);
  }

  #resize(bytes: number, accessTime: number): void {
    const { size } = this.#entries;
    this.#bytes += bytes;
    this.#accessTimeSum += accessTime;
    this.#metrics.entryCount = size;
    this.#metrics.averageAccessTime = size === 0 ? 0 : Math.floor(this.#accessTimeSum / size);
  }
}

function getSize(key: string): number {
  return key.length * 2 + entryOverheadBytes;
}
