import { KeyQueue } from '@tollgate/kit/collections';
import { localCacheStatNames, statsNames } from '../stats/names.ts';
import type { StatsRegistry } from '../stats/registry.ts';

/** Figures of the cache, named after the gauges they feed (`ratelimit.localcache.*`). */
interface LocalCacheFigures {
  evacuateCount: number;
  expiredCount: number;
  entryCount: number;
  averageAccessTime: number;
  hitCount: number;
  missCount: number;
  lookupCount: number;
  overwriteCount: number;
}

/** Remembers which counters are over their limit, so that the backend need not be asked again. */
export interface LocalCache {
  has(key: string, nowSeconds: number): boolean;
  /** Remembers `key` until `untilSeconds` (Unix time); a key too long to be held is not remembered. */
  add(key: string, nowSeconds: number, untilSeconds: number): void;
  readonly figures: Readonly<LocalCacheFigures>;
}

/** The smallest cache that is of use; smaller sizes are raised to it, as envoyproxy/ratelimit does. */
const minimumSizeBytes = 512 * 1024;

/** Longest key that is held. */
const maxKeyBytes = 65_535;

/**
 * What an entry costs besides its text: a Map slot, a string header and the entry's two numbers, rounded up from
 * what V8 was seen to use.
 */
const entryOverheadBytes = 96;

interface CacheEntry {
  untilSeconds: number;
  usedAtSeconds: number;
}

/** Makes a cache that holds about `sizeBytes`; the least recently used entries give way. */
export function createLocalCache(sizeBytes: number): LocalCache {
  const limitBytes = Math.max(sizeBytes, minimumSizeBytes);
  const entries = new Map<string, CacheEntry>();
  const leastRecentlyUsed = new KeyQueue();
  let bytes = 0;
  let accessTimeSum = 0;
  const figures: LocalCacheFigures = {
    evacuateCount: 0,
    expiredCount: 0,
    entryCount: 0,
    averageAccessTime: 0,
    hitCount: 0,
    missCount: 0,
    lookupCount: 0,
    overwriteCount: 0,
  };

  function remove(key: string, entry: CacheEntry): void {
    entries.delete(key);
    leastRecentlyUsed.delete(key);
    bytes -= sizeOf(key);
    accessTimeSum -= entry.usedAtSeconds;
    refreshEntryFigures();
  }

  function insert(key: string, entry: CacheEntry): void {
    entries.set(key, entry);
    leastRecentlyUsed.add(key);
    bytes += sizeOf(key);
    accessTimeSum += entry.usedAtSeconds;
    refreshEntryFigures();
  }

  function refreshEntryFigures(): void {
    figures.entryCount = entries.size;
    figures.averageAccessTime = entries.size === 0 ? 0 : Math.floor(accessTimeSum / entries.size);
  }

  function makeRoom(nowSeconds: number): void {
    while (bytes > limitBytes) {
      const key = leastRecentlyUsed.first();
      const entry = key === undefined ? undefined : entries.get(key);
      if (key === undefined || entry === undefined) {
        return;
      }
      remove(key, entry);
      if (entry.untilSeconds <= nowSeconds) {
        figures.expiredCount += 1;
      } else {
        figures.evacuateCount += 1;
      }
    }
  }

  return {
    figures,
    has(key, nowSeconds) {
      figures.lookupCount += 1;
      const entry = entries.get(key);
      if (entry !== undefined && entry.untilSeconds > nowSeconds) {
        figures.hitCount += 1;
        remove(key, entry);
        insert(key, { untilSeconds: entry.untilSeconds, usedAtSeconds: nowSeconds });
        return true;
      }
      if (entry !== undefined) {
        remove(key, entry);
        figures.expiredCount += 1;
      }
      figures.missCount += 1;
      return false;
    },
    add(key, nowSeconds, untilSeconds) {
      if (Buffer.byteLength(key) > maxKeyBytes) {
        return;
      }
      const known = entries.get(key);
      if (known !== undefined) {
        remove(key, known);
        figures.overwriteCount += 1;
      }
      insert(key, { untilSeconds, usedAtSeconds: nowSeconds });
      makeRoom(nowSeconds);
    },
  };
}

function sizeOf(key: string): number {
  return key.length * 2 + entryOverheadBytes;
}

/** Shows the cache's figures as gauges, `ratelimit.localcache.*`. */
export function registerLocalCacheGauges(cache: LocalCache, stats: StatsRegistry): void {
  for (const name of localCacheStatNames) {
    stats.gauge(`${statsNames.localCachePrefix}${name}`, () => cache.figures[name]);
  }
}
