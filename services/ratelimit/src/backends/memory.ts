import { createHash } from 'node:crypto';
import { KeyQueue, RecentlyUsed } from '@tollgate/kit/collections';
import type { Rate } from '@tollgate/rules/rule-set';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { backendFailure } from '../errors.ts';
import { type State, take, toResult } from './algorithms.ts';
import { type AllOrNone, type ConditionalHit, getRefusal } from './all-or-none.ts';
import type { CounterBackend, Hit, SharedStore, Subscriber } from './counter-backend.ts';

/**
 * Longest key that is stored as it is. Clients choose the values in keys, which may be megabytes;
 * longer keys are stored as their hash, so that `maxCounters` bounds the memory.
 */
const maxKeyLength = 256;

/** A state with more numbers, of a busy concurrency limit, takes the place of several counters. */
const numbersPerCounter = 3;

/** Redis counts in signed 64-bit integers; both backends refuse more. */
const maxCount = 2 ** 63;

/** BACKEND_TYPE=memory. */
export function createMemoryBackend(
  { memoryMaxCounters }: Pick<Settings, 'memoryMaxCounters'>,
  { nowMs, stats }: Pick<Context, 'nowMs' | 'stats'>,
): Promise<CounterBackend> {
  const backend = new MemoryBackend({ nowMs, maxCounters: memoryMaxCounters });
  stats.gauge('ratelimit.memory.counters', () => backend.size);
  stats.gauge('ratelimit.memory.evicted', () => backend.evicted);
  return Promise.resolve(backend);
}

interface MemoryBackendOptions {
  readonly nowMs: () => number;
  /** Maximum number of counters, of about 200 bytes each. */
  readonly maxCounters: number;
}

/**
 * Counters in the process: for development, tests and single instances. They are not shared and do
 * not survive a restart. A counter is kept until its window ends, after which no request uses its
 * key.
 */
export class MemoryBackend implements CounterBackend {
  readonly shared: SharedStore;
  readonly #store: CounterStore;
  /** Of limits that are not counted in fixed windows: the states of `take`. */
  readonly #rates: RecentlyUsed<NonNullable<State>>;
  readonly #nowMs: () => number;

  constructor({ nowMs, maxCounters }: MemoryBackendOptions) {
    this.#store = new CounterStore(maxCounters);
    const weigh = (_: string, state: readonly number[]) => Math.ceil(state.length / numbersPerCounter);
    this.#rates = new RecentlyUsed({ capacity: maxCounters, weigh });
    this.#nowMs = nowMs;
    this.shared = new MemorySharedStore((prefix) => this.#deleteByPrefix(prefix));
  }

  get size(): number {
    return this.#store.size;
  }

  /** Counters that were evicted before they expired. */
  get evicted(): number {
    return this.#store.evicted;
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async read(hits: readonly Hit[]): Promise<readonly number[]> {
    const now = Math.floor(this.#nowMs() / 1000);
    return hits.map(({ key }) => this.#store.read(toStoredKey(key), now));
  }

  async addAllOrNone(hits: readonly ConditionalHit[]): Promise<AllOrNone> {
    const nowMs = this.#nowMs();
    const counters = {
      count: (key: string) => this.#store.read(toStoredKey(key), Math.floor(nowMs / 1000)),
      state: (key: string) => this.#rates.get(toStoredKey(key)),
    };
    const refusal = getRefusal(hits, counters, nowMs * 1000);
    return refusal === undefined
      ? { refused: false, counts: this.#addAt(hits, nowMs) }
      : { refused: true, counts: refusal };
  }

  async add(hits: readonly Hit[]): Promise<readonly number[]> {
    return this.#addAt(hits, this.#nowMs());
  }

  #addAt(hits: readonly Hit[], nowMs: number): readonly number[] {
    const now = Math.floor(nowMs / 1000);
    return hits.map((hit) =>
      hit.rate === undefined ? this.#addHit(hit, now) : this.#takeHit(hit, hit.rate, nowMs),
    );
  }

  /** Keys that are stored as their hash are not found. */
  #deleteByPrefix(prefix: string): number {
    const rates = this.#rates.keys().filter((key) => key.startsWith(prefix));
    for (const key of rates) this.#rates.delete(key);
    return rates.length + this.#store.deleteByPrefix(prefix, Math.floor(this.#nowMs() / 1000));
  }

  #takeHit({ key, addend }: Hit, rate: Rate, nowMs: number): number {
    const storedKey = toStoredKey(key);
    const request = { hits: addend, times: 1, nowUs: nowMs * 1000 };
    const taken = take(rate, this.#rates.get(storedKey), request);
    if (taken.state?.length === 0) this.#rates.delete(storedKey);
    else if (taken.state !== undefined) this.#rates.set(storedKey, taken.state);
    return toResult(taken, addend, 0);
  }

  #addHit({ key, addend, secondsLeft }: Hit, now: number): number {
    const storedKey = toStoredKey(key);
    if (addend < 0) {
      const taken = Math.min(-addend, this.#store.read(storedKey, now));
      return taken === 0 ? 0 : this.#store.add(storedKey, -taken, now + secondsLeft, now);
    }
    const count = this.#store.add(storedKey, addend, now + secondsLeft, now);
    if (count >= maxCount) {
      this.#store.add(storedKey, -addend, now + secondsLeft, now);
      throw backendFailure('increment or decrement would overflow');
    }
    return count;
  }
}

function toStoredKey(key: string): string {
  return key.length <= maxKeyLength ? key : createHash('sha256').update(key).digest('base64');
}

/** The process is the only replica. */
class MemorySharedStore implements SharedStore {
  readonly deleteByPrefix: SharedStore['deleteByPrefix'];
  readonly #subscribers = new Set<Subscriber>();
  readonly #entries = new Map<string, string>();

  constructor(deleteByPrefix: (prefix: string) => number) {
    this.deleteByPrefix = async (prefix) => deleteByPrefix(prefix);
  }

  async listEntries(): Promise<ReadonlyMap<string, string>> {
    return new Map(this.#entries);
  }

  async setEntry(name: string, text: string): Promise<void> {
    this.#entries.set(name, text);
  }

  async deleteEntry(name: string): Promise<boolean> {
    return this.#entries.delete(name);
  }

  async publish(message: string): Promise<void> {
    for (const { onMessage } of this.#subscribers) onMessage(message);
  }

  async subscribe(subscriber: Subscriber, signal: AbortSignal): Promise<void> {
    this.#subscribers.add(subscriber);
    signal.addEventListener('abort', () => this.#subscribers.delete(subscriber), { once: true });
    subscriber.onGap();
  }
}

interface StoredCounter {
  count: number;
  readonly expiresAtSeconds: number;
}

/**
 * Expired counters that are removed with each hit: more than one, so that they are removed faster
 * than new ones are added, and few, so that the end of a window with a million counters does not
 * stall requests.
 */
const sweptPerAdd = 4;

/**
 * Counters that expire together, by the magnitude of their count (0 and 1, 2 and 3, 4 to 7, …),
 * oldest first in each.
 */
type Generation = KeyQueue[];

/**
 * At most `maxCounters` counters.
 *
 * Expired counters are evicted first, then the counters that expire soonest, because their loss is
 * over soonest. Of counters that expire together, the smallest are evicted, oldest first: a flood
 * of new keys, all small, evicts itself and spares the counters that are close to a limit.
 */
class CounterStore {
  readonly #maxCounters: number;
  readonly #counters = new Map<string, StoredCounter>();
  readonly #generations = new Map<number, Generation>();
  #evicted = 0;
  #soonestSeconds = Number.POSITIVE_INFINITY;

  constructor(maxCounters: number) {
    this.#maxCounters = maxCounters;
  }

  get size(): number {
    return this.#counters.size;
  }

  get evicted(): number {
    return this.#evicted;
  }

  /** 0 when the counter does not exist. */
  read(key: string, nowSeconds: number): number {
    const counter = this.#counters.get(key);
    return counter === undefined || counter.expiresAtSeconds <= nowSeconds ? 0 : counter.count;
  }

  /** Adds to a counter, which starts at 0, and returns the sum. */
  add(key: string, addend: number, expiresAtSeconds: number, nowSeconds: number): number {
    this.#sweep(nowSeconds);
    let counter = this.#counters.get(key);
    if (counter !== undefined && counter.expiresAtSeconds <= nowSeconds) {
      this.#remove(key, counter);
      counter = undefined;
    }
    if (counter === undefined) {
      if (this.#counters.size >= this.#maxCounters) {
        this.#evictOne(nowSeconds);
      }
      counter = { count: addend, expiresAtSeconds };
      this.#counters.set(key, counter);
      this.#enqueue(key, counter);
      return addend;
    }
    const before = toMagnitude(counter.count);
    counter.count += addend;
    if (toMagnitude(counter.count) !== before) {
      this.#generations.get(counter.expiresAtSeconds)?.[before]?.delete(key);
      this.#enqueue(key, counter);
    }
    return counter.count;
  }

  /** Returns how many of them had not expired. */
  deleteByPrefix(prefix: string, nowSeconds: number): number {
    let deleted = 0;
    for (const [key, counter] of this.#counters) {
      if (!key.startsWith(prefix)) continue;
      this.#remove(key, counter);
      if (counter.expiresAtSeconds > nowSeconds) deleted += 1;
    }
    return deleted;
  }

  #enqueue(key: string, { count, expiresAtSeconds }: StoredCounter): void {
    let generation = this.#generations.get(expiresAtSeconds);
    if (generation === undefined) {
      generation = [];
      this.#generations.set(expiresAtSeconds, generation);
      this.#soonestSeconds = Math.min(this.#soonestSeconds, expiresAtSeconds);
    }
    const magnitude = toMagnitude(count);
    generation[magnitude] ??= new KeyQueue();
    generation[magnitude].add(key);
  }

  // Expiries are the ends of a few windows, so there are few generations however many counters
  // there are.
  #dropGeneration(expiresAtSeconds: number): void {
    this.#generations.delete(expiresAtSeconds);
    this.#soonestSeconds = Math.min(Number.POSITIVE_INFINITY, ...this.#generations.keys());
  }

  #remove(key: string, { count, expiresAtSeconds }: StoredCounter): void {
    this.#counters.delete(key);
    this.#generations.get(expiresAtSeconds)?.[toMagnitude(count)]?.delete(key);
  }

  /** The counter to evict first; undefined when there is none. */
  #findNext(): [key: string, counter: StoredCounter] | undefined {
    while (this.#soonestSeconds < Number.POSITIVE_INFINITY) {
      for (const keys of this.#generations.get(this.#soonestSeconds) ?? []) {
        // Magnitudes without a counter are holes.
        const key = keys?.first();
        const counter = key === undefined ? undefined : this.#counters.get(key);
        if (key !== undefined && counter !== undefined) return [key, counter];
      }
      this.#dropGeneration(this.#soonestSeconds);
    }
    return undefined;
  }

  #sweep(nowSeconds: number): void {
    for (let i = 0; i < sweptPerAdd && this.#soonestSeconds <= nowSeconds; i += 1) {
      const next = this.#findNext();
      if (next === undefined || next[1].expiresAtSeconds > nowSeconds) return;
      this.#remove(...next);
    }
  }

  #evictOne(nowSeconds: number): void {
    const next = this.#findNext();
    if (next === undefined) return;
    this.#remove(...next);
    this.#evicted += next[1].expiresAtSeconds > nowSeconds ? 1 : 0;
  }
}

/** Position of the highest bit; 0 for 0. */
function toMagnitude(count: number): number {
  return count < 2 ? 0 : Math.floor(Math.log2(count));
}
