import type { MemcacheNode } from 'memcache';
import { backendFailure } from '../../errors.ts';
import { memcachedStatNames as names } from '../../metrics/names.ts';
import type { Counter, StatsRegistry } from '../../metrics/registry.ts';
import { StoreStats } from '../../metrics/store-stats.ts';
import type { BatchCounter } from '../batch.ts';

/** Statistics of memcached; every series exists from the start. */
export class MemcachedStats {
  readonly multiGet: { readonly success: Counter; readonly error: Counter };
  readonly increment: { readonly success: Counter; readonly miss: Counter; readonly error: Counter };
  readonly add: { readonly success: Counter; readonly notStored: Counter; readonly error: Counter };
  readonly keysRequested: Counter;
  readonly keysFound: Counter;
  readonly exchanges: StoreStats;
  readonly uncountedHits: Counter;

  constructor(stats: StatsRegistry) {
    this.exchanges = new StoreStats('memcache', stats);
    const result = (name: string, code: string): Counter => stats.counter(name, { code });
    this.multiGet = { success: result(names.multiGet, 'success'), error: result(names.multiGet, 'error') };
    this.increment = {
      success: result(names.increment, 'success'),
      miss: result(names.increment, 'miss'),
      error: result(names.increment, 'error'),
    };
    this.add = {
      success: result(names.add, 'success'),
      notStored: result(names.add, 'not_stored'),
      error: result(names.add, 'error'),
    };
    this.keysRequested = stats.counter(names.keysRequested);
    this.keysFound = stats.counter(names.keysFound);
    this.uncountedHits = stats.counter(names.uncountedHits);
  }
}

interface StoredCounter {
  readonly key: string;
  readonly counter: BatchCounter;
}

export interface ServerBatch {
  readonly reads: StoredCounter[];
  readonly adds: StoredCounter[];
}

interface ServerContext {
  readonly stats: MemcachedStats;
  /** Unix time in whole seconds. */
  readonly nowSeconds: () => number;
  /** Called with the count after the hits were added, or the one that was read. */
  readonly settle: (counter: BatchCounter, count: number) => void;
  /** Called when reading or adding failed; the hits may have been counted. */
  readonly fail: (counter: BatchCounter, error: unknown) => void;
}

/** Keys of one `get`, so that the line stays short and a large batch does not block the others. */
const maxKeysPerGet = 100;

/** Sends a batch in one write. Never rejects: counters fail separately. */
export async function sendToServer(
  driver: MemcacheNode,
  { reads, adds }: ServerBatch,
  deps: ServerContext,
): Promise<void> {
  const { socket } = driver;
  // One write for all commands.
  socket?.cork();
  const replies = [
    ...inChunks(reads, maxKeysPerGet).map((chunk) => readCounters(driver, chunk, deps)),
    ...adds.map((one) => addToCounter(driver, one, deps)),
  ];
  socket?.uncork();
  await Promise.all(replies);
}

async function readCounters(
  driver: MemcacheNode,
  counters: readonly StoredCounter[],
  deps: ServerContext,
): Promise<void> {
  const { stats, settle, fail } = deps;
  const keys = counters.map(({ key }) => key);
  stats.keysRequested.value += keys.length;
  try {
    const reply: unknown = await driver.command(`get ${keys.join(' ')}`, {
      isMultiline: true,
      requestedKeys: keys,
    });
    stats.multiGet.success.value += 1;
    const found = parseGetReply(reply);
    stats.keysFound.value += found.size;
    for (const { key, counter } of counters) {
      const value = found.get(key) ?? '0';
      if (/^\d+ *$/.test(value)) settle(counter, Number(value));
      else fail(counter, notACounter());
    }
  } catch (error) {
    stats.multiGet.error.value += 1;
    for (const { counter } of counters) fail(counter, error);
  }
}

/** Values by key; the driver omits `values` when there are none. */
function parseGetReply(reply: unknown): Map<string, string> {
  // Parsed boundary: the driver types it `any`, and returns this shape when the keys are given.
  const { foundKeys, values = [] } = reply as { foundKeys: string[]; values?: string[] };
  return new Map(foundKeys.map((key, i) => [key, values[i] ?? '']));
}

async function addToCounter(
  driver: MemcacheNode,
  { key, counter }: StoredCounter,
  deps: ServerContext,
): Promise<void> {
  const { increment: metrics } = deps.stats;
  try {
    const count =
      counter.addend < 0
        ? // Never below 0; a counter that does not exist is 0.
          ((await change(driver, `decr ${key} ${-counter.addend}`, metrics)) ?? 0)
        : await incrementOrCreate(driver, key, counter, deps);
    deps.settle(counter, count);
  } catch (error) {
    deps.fail(counter, error);
  }
}

/**
 * Adds to a counter and creates it if needed: `incr` does not create counters, and several limiters
 * may create the same one at once. Each command is atomic, so each hit is counted once.
 */
async function incrementOrCreate(
  driver: MemcacheNode,
  key: string,
  { addend, ttlSeconds }: BatchCounter,
  { stats, nowSeconds }: ServerContext,
): Promise<number> {
  const increment = `incr ${key} ${addend}`;
  const count =
    (await change(driver, increment, stats.increment)) ??
    (await create(driver, key, addend, expiry(ttlSeconds, nowSeconds()), stats)) ??
    // Another limiter created it meanwhile.
    (await change(driver, increment, stats.increment));
  if (count === undefined) {
    throw backendFailure('memcached evicted a counter right after it was stored: check its memory limit');
  }
  return count;
}

/** The count after `incr` or `decr`; undefined when the counter does not exist. */
async function change(
  driver: MemcacheNode,
  text: string,
  metrics: MemcachedStats['increment'],
): Promise<number | undefined> {
  const reply = await command(driver, text, metrics.error);
  if (typeof reply === 'number') {
    metrics.success.value += 1;
    return reply;
  }
  if (reply === 'NOT_FOUND') {
    metrics.miss.value += 1;
    return undefined;
  }
  metrics.error.value += 1;
  throw notACounter();
}

/** The count of a new counter; undefined when it exists already. */
async function create(
  driver: MemcacheNode,
  key: string,
  count: number,
  expiresAt: number,
  { add: metrics }: MemcachedStats,
): Promise<number | undefined> {
  const value = String(count);
  const reply = await command(driver, `add ${key} 0 ${expiresAt} ${value.length}\r\n${value}`, metrics.error);
  const stored = reply === 'STORED';
  metrics[stored ? 'success' : 'notStored'].value += 1;
  return stored ? count : undefined;
}

async function command(driver: MemcacheNode, text: string, failed: { value: number }): Promise<unknown> {
  try {
    return await driver.command(text);
  } catch (error) {
    failed.value += 1;
    throw error;
  }
}

/** The longest relative TTL of memcached; larger values are Unix times. */
const maxRelativeSeconds = 30 * 24 * 3600;

function expiry(ttlSeconds: number, nowSeconds: number): number {
  return ttlSeconds <= maxRelativeSeconds ? ttlSeconds : nowSeconds + ttlSeconds;
}

function notACounter(): Error {
  return backendFailure('the value of a counter in memcached is not a number');
}

function inChunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}
