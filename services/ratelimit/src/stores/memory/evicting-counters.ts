import { KeyQueue } from '@tollgate/kit/collections';
import type { State } from '../../algorithms/algorithm.ts';

interface StoredCounter {
  /** Hits in use; a state has them beside its numbers. */
  count: number;
  expiresAtSeconds: number;
  /** Undefined for fixed windows. */
  state: State;
}

/** A state with more numbers, of a busy concurrency limit, takes the place of several counters. */
const numbersPerCounter = 3;

/**
 * Expiries of states are rounded up by at most one of so many parts of the time until then:
 * otherwise each second in a year might have a generation.
 */
const partsUntilExpiry = 64;

/**
 * Keys of counters by expiry. Counters of one expiry, a generation, are kept by the magnitude of
 * their count (0 and 1, 2 and 3, 4 to 7, …), oldest first in each.
 */
class Generations {
  readonly #byExpiry = new Map<number, KeyQueue[]>();
  #soonestSeconds = Number.POSITIVE_INFINITY;

  /** Expiry of the first key, after `first`; may be earlier before. */
  get soonestSeconds(): number {
    return this.#soonestSeconds;
  }

  add(key: string, expiresAtSeconds: number, magnitude: number): void {
    let generation = this.#byExpiry.get(expiresAtSeconds);
    if (generation === undefined) {
      generation = [];
      this.#byExpiry.set(expiresAtSeconds, generation);
      this.#soonestSeconds = Math.min(this.#soonestSeconds, expiresAtSeconds);
    }
    generation[magnitude] ??= new KeyQueue();
    generation[magnitude].add(key);
  }

  delete(key: string, expiresAtSeconds: number, magnitude: number): void {
    this.#byExpiry.get(expiresAtSeconds)?.[magnitude]?.delete(key);
  }

  /** The first key of the smallest magnitude in the generation that expires soonest. */
  first(): string | undefined {
    while (this.#soonestSeconds < Number.POSITIVE_INFINITY) {
      const key = findFirst(this.#byExpiry.get(this.#soonestSeconds) ?? []);
      if (key !== undefined) return key;
      // Expiries are the ends of a few windows, or rounded, so there are few generations however
      // many counters there are.
      this.#byExpiry.delete(this.#soonestSeconds);
      this.#soonestSeconds = Math.min(Number.POSITIVE_INFINITY, ...this.#byExpiry.keys());
    }
    return undefined;
  }
}

function findFirst(queues: readonly (KeyQueue | undefined)[]): string | undefined {
  // Magnitudes without a counter are holes.
  for (const queue of queues) {
    const key = queue?.first();
    if (key !== undefined) return key;
  }
  return undefined;
}

/**
 * Expired counters that are removed with each hit: more than one, so that they are removed faster
 * than new ones are added, and few, so that the end of a window with a million counters does not
 * stall requests.
 */
const sweptPerAdd = 4;

/**
 * Holds at most `maxCounters` counters: counts of fixed windows, and states of other algorithms,
 * which expire once they equal that of a new counter.
 *
 * Expired counters are evicted first, then counts of the windows that end soonest, because their
 * loss is over soonest. Of counts that expire together the smallest are evicted, oldest first: a
 * flood of new keys, all small, evicts itself and spares the counters that are close to a limit.
 * States expire at any time, so that the smallest of all are evicted.
 */
export class EvictingCounters {
  readonly #maxCounters: number;
  readonly #counters = new Map<string, StoredCounter>();
  readonly #windows = new Generations();
  readonly #states = new Generations();
  /** Queues by magnitude, as in a generation. */
  readonly #statesByUse: KeyQueue[] = [];
  #size = 0;
  #evicted = 0;

  constructor(maxCounters: number) {
    this.#maxCounters = maxCounters;
  }

  /** Counters; one with a long state counts as several. */
  get size(): number {
    return this.#size;
  }

  get evicted(): number {
    return this.#evicted;
  }

  /** 0 when the counter does not exist. */
  read(key: string, nowSeconds: number): number {
    const counter = this.#counters.get(key);
    return counter === undefined || counter.expiresAtSeconds <= nowSeconds ? 0 : counter.count;
  }

  /** Undefined when the counter does not exist. */
  readState(key: string, nowSeconds: number): State {
    const counter = this.#counters.get(key);
    return counter === undefined || counter.expiresAtSeconds <= nowSeconds ? undefined : counter.state;
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
      this.#insert(key, { count: addend, expiresAtSeconds, state: undefined }, nowSeconds);
      return addend;
    }
    const before = toMagnitude(counter.count);
    counter.count += addend;
    const magnitude = toMagnitude(counter.count);
    if (magnitude !== before) {
      this.#windows.delete(key, counter.expiresAtSeconds, before);
      this.#windows.add(key, counter.expiresAtSeconds, magnitude);
    }
    return counter.count;
  }

  /** `used` is the number of hits in use, and `expiryUs` later than now. */
  setState(
    key: string,
    { state, used, expiryUs }: { readonly state: State; readonly used: number; readonly expiryUs: number },
    nowSeconds: number,
  ): void {
    this.#sweep(nowSeconds);
    const next = { count: used, expiresAtSeconds: roundExpiry(expiryUs, nowSeconds), state };
    const counter = this.#counters.get(key);
    if (counter === undefined) {
      this.#insert(key, next, nowSeconds);
    } else if (
      counter.expiresAtSeconds === next.expiresAtSeconds &&
      toMagnitude(counter.count) === toMagnitude(used) &&
      toSize(counter) === toSize(next)
    ) {
      counter.count = used;
      counter.state = state;
    } else {
      this.#remove(key, counter);
      this.#insert(key, next, nowSeconds);
    }
  }

  delete(key: string): void {
    const counter = this.#counters.get(key);
    if (counter !== undefined) this.#remove(key, counter);
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

  #insert(key: string, counter: StoredCounter, nowSeconds: number): void {
    const { count, expiresAtSeconds, state } = counter;
    const size = toSize(counter);
    while (this.#size + size > this.#maxCounters) if (!this.#evictOne(nowSeconds)) break;
    this.#counters.set(key, counter);
    this.#size += size;
    const magnitude = toMagnitude(count);
    if (state === undefined) {
      this.#windows.add(key, expiresAtSeconds, magnitude);
      return;
    }
    this.#states.add(key, expiresAtSeconds, 0);
    this.#statesByUse[magnitude] ??= new KeyQueue();
    this.#statesByUse[magnitude].add(key);
  }

  #remove(key: string, counter: StoredCounter): void {
    const { count, expiresAtSeconds, state } = counter;
    this.#counters.delete(key);
    this.#size -= toSize(counter);
    const magnitude = toMagnitude(count);
    if (state === undefined) {
      this.#windows.delete(key, expiresAtSeconds, magnitude);
      return;
    }
    this.#states.delete(key, expiresAtSeconds, 0);
    this.#statesByUse[magnitude]?.delete(key);
  }

  #sweep(nowSeconds: number): void {
    this.#sweepExpired(this.#windows, nowSeconds);
    this.#sweepExpired(this.#states, nowSeconds);
  }

  #sweepExpired(generations: Generations, nowSeconds: number): void {
    for (let i = 0; i < sweptPerAdd && generations.soonestSeconds <= nowSeconds; i += 1) {
      const key = generations.first();
      if (key === undefined || generations.soonestSeconds > nowSeconds) return;
      this.delete(key);
    }
  }

  /** False when there is none. */
  #evictOne(nowSeconds: number): boolean {
    const key = this.#findNext();
    const counter = key === undefined ? undefined : this.#counters.get(key);
    if (key === undefined || counter === undefined) return false;
    this.#remove(key, counter);
    this.#evicted += counter.expiresAtSeconds > nowSeconds ? 1 : 0;
    return true;
  }

  /** The counter to evict first: the smaller of a window and a state. */
  #findNext(): string | undefined {
    const [windowKey, stateKey] = [this.#windows.first(), findFirst(this.#statesByUse)];
    if (windowKey === undefined || stateKey === undefined) return windowKey ?? stateKey;
    const [window, state] = [this.#counters.get(windowKey), this.#counters.get(stateKey)];
    if (window === undefined || state === undefined) return window === undefined ? stateKey : windowKey;
    const order =
      toMagnitude(window.count) - toMagnitude(state.count) ||
      window.expiresAtSeconds - state.expiresAtSeconds;
    return order <= 0 ? windowKey : stateKey;
  }
}

/** Position of the highest bit; 0 for 0. */
function toMagnitude(count: number): number {
  return count < 2 ? 0 : Math.floor(Math.log2(count));
}

function toSize({ state }: Pick<StoredCounter, 'state'>): number {
  return state === undefined ? 1 : Math.ceil(state.length / numbersPerCounter);
}

function roundExpiry(expiryUs: number, nowSeconds: number): number {
  const seconds = Math.ceil(expiryUs / 1e6);
  const parts = Math.max(1, (seconds - nowSeconds) / partsUntilExpiry);
  // Powers of two, so that limits with different periods share generations.
  const step = 2 ** Math.floor(Math.log2(parts));
  return Math.ceil(seconds / step) * step;
}
