import type { MemcacheNode } from 'memcache';
import { backendFailure } from '../../errors.ts';
import { memcachedStatNames as names } from '../../stats/names.ts';
import type { Counter, StatsRegistry } from '../../stats/registry.ts';
import type { BatchCounter } from '../batch.ts';

/** What is counted of the exchanges with memcached. */
export interface MemcachedStats {
  readonly multiGet: { readonly success: Counter; readonly error: Counter };
  readonly increment: { readonly success: Counter; readonly miss: Counter; readonly error: Counter };
  readonly add: { readonly success: Counter; readonly notStored: Counter; readonly error: Counter };
  readonly keysRequested: Counter;
  readonly keysFound: Counter;
  /** Hits that were let through without being counted. */
  readonly uncountedHits: Counter;
}

/** Makes the statistics, so that all of them are there from the start. */
export function createMemcachedStats(stats: StatsRegistry): MemcachedStats {
  const outcome = (name: string, code: string): Counter => stats.counter(name, { code });
  return {
    multiGet: { success: outcome(names.multiGet, 'success'), error: outcome(names.multiGet, 'error') },
    increment: {
      success: outcome(names.increment, 'success'),
      miss: outcome(names.increment, 'miss'),
      error: outcome(names.increment, 'error'),
    },
    add: {
      success: outcome(names.add, 'success'),
      notStored: outcome(names.add, 'not_stored'),
      error: outcome(names.add, 'error'),
    },
    keysRequested: stats.counter(names.keysRequested),
    keysFound: stats.counter(names.keysFound),
    uncountedHits: stats.counter(names.uncountedHits),
  };
}

/** A counter and the name under which memcached holds it. */
interface StoredCounter {
  readonly key: string;
  readonly counter: BatchCounter;
}

/** Counters that one server holds. */
export interface ServerBatch {
  /** To be read only. */
  readonly reads: StoredCounter[];
  /** To be added to. */
  readonly adds: StoredCounter[];
}

/** What counting takes. */
export interface CountingDeps {
  readonly stats: MemcachedStats;
  /** Unix time in whole seconds. */
  readonly nowSeconds: () => number;
  /** Tells the count of a counter after its hits were added, or as it stands. */
  readonly settle: (counter: BatchCounter, count: number) => void;
  /** Tells that a counter could not be read or added to; what was sent may or may not have been counted. */
  readonly fail: (counter: BatchCounter, error: unknown) => void;
}

/** Keys that are read with one command, so that the line stays short and a large batch does not hold up the others. */
const maxKeysPerGet = 100;

/** Sends a batch in one go and tells what each counter came to. Never rejects: a counter that fails fails alone. */
export async function countOnServer(
  driver: MemcacheNode,
  { reads, adds }: ServerBatch,
  deps: CountingDeps,
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
  deps: CountingDeps,
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
    const found = foundValues(reply);
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

/** What `get` answered, by key; the driver leaves the values out where there are none. */
function foundValues(reply: unknown): Map<string, string> {
  // Parsed boundary: the driver types it `any`, and answers this when the keys were given.
  const { foundKeys, values = [] } = reply as { foundKeys: string[]; values?: string[] };
  return new Map(foundKeys.map((key, i) => [key, values[i] ?? '']));
}

async function addToCounter(
  driver: MemcacheNode,
  { key, counter }: StoredCounter,
  deps: CountingDeps,
): Promise<void> {
  try {
    deps.settle(counter, await addedCount(driver, key, counter, deps));
  } catch (error) {
    deps.fail(counter, error);
  }
}

/**
 * Adds to a counter wherever it stands: memcached makes none by adding to it, and several limiters may want to make the
 * same one at the same time. Each command is all or nothing, so each hit is counted once.
 */
async function addedCount(
  driver: MemcacheNode,
  key: string,
  { addend, ttlSeconds }: BatchCounter,
  { stats, nowSeconds }: CountingDeps,
): Promise<number> {
  const count =
    (await increment(driver, key, addend, stats)) ??
    (await make(driver, key, addend, expiry(ttlSeconds, nowSeconds()), stats)) ??
    // Somebody else was faster.
    (await increment(driver, key, addend, stats));
  if (count === undefined) {
    throw backendFailure('memcached gave up a counter as soon as it had it: has it enough memory?');
  }
  return count;
}

/** The count after adding; undefined when there is no such counter. */
async function increment(
  driver: MemcacheNode,
  key: string,
  addend: number,
  { increment: outcomes }: MemcachedStats,
): Promise<number | undefined> {
  const reply = await command(driver, `incr ${key} ${addend}`, outcomes.error);
  if (typeof reply === 'number') {
    outcomes.success.value += 1;
    return reply;
  }
  if (reply === 'NOT_FOUND') {
    outcomes.miss.value += 1;
    return undefined;
  }
  outcomes.error.value += 1;
  throw notACounter();
}

/** The count of a new counter; undefined when there is one already. */
async function make(
  driver: MemcacheNode,
  key: string,
  count: number,
  expiresAt: number,
  { add: outcomes }: MemcachedStats,
): Promise<number | undefined> {
  const value = String(count);
  const reply = await command(
    driver,
    `add ${key} 0 ${expiresAt} ${value.length}\r\n${value}`,
    outcomes.error,
  );
  const stored = reply === 'STORED';
  outcomes[stored ? 'success' : 'notStored'].value += 1;
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

/** Longest time to live that memcached takes for one; anything above it takes for a Unix time. */
const maxRelativeSeconds = 30 * 24 * 3600;

function expiry(ttlSeconds: number, nowSeconds: number): number {
  return ttlSeconds <= maxRelativeSeconds ? ttlSeconds : nowSeconds + ttlSeconds;
}

function notACounter(): Error {
  return backendFailure('memcached holds something that is no number under the name of a counter');
}

function inChunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}
