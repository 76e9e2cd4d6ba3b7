import { createHash } from 'node:crypto';
import { KeyQueue } from '@tollgate/kit/collections';
import { backendFailure } from '../errors.ts';
import type { BackendModule, CounterBackend, CounterHit } from './counter-backend.ts';

/** Figures of the store. */
interface CounterStoreFigures {
  /** Counters held. */
  readonly size: number;
  /** Counters given up before they expired, to make room. */
  readonly evicted: number;
}

/** Counters in memory, at most so many. */
interface CounterStore {
  /** Adds to a counter, which starts at 0, and answers the sum. */
  add(key: string, addend: number, expiresAtSeconds: number, nowSeconds: number): number;
  /** The counter's value; 0 when it is not there. */
  read(key: string, nowSeconds: number): number;
  readonly figures: () => CounterStoreFigures;
}

interface StoredCounter {
  count: number;
  readonly expiresAtSeconds: number;
}

/**
 * Expired counters removed with each hit: more than one, so that they go faster than new ones come, and few, so that
 * the end of a window with a million counters makes nobody wait.
 */
const sweptPerAdd = 4;

/** Counters that expire together, by the magnitude of their count: [0 and 1, 2 and 3, 4 to 7, …], oldest first in each. */
type Generation = KeyQueue[];

/**
 * Makes a store that never holds more than `maxCounters`.
 *
 * Room is made first by what has expired, then by what expires soonest, because its loss is over soonest. Of those
 * that expire together the smallest give way, oldest first: a flood of new keys, all small, evicts itself and leaves
 * standing what is close to a limit.
 */
function createCounterStore(maxCounters: number): CounterStore {
  const counters = new Map<string, StoredCounter>();
  const generations = new Map<number, Generation>();
  let evicted = 0;
  let soonestSeconds = Number.POSITIVE_INFINITY;

  function place(key: string, { count, expiresAtSeconds }: StoredCounter): void {
    let generation = generations.get(expiresAtSeconds);
    if (generation === undefined) {
      generation = [];
      generations.set(expiresAtSeconds, generation);
      soonestSeconds = Math.min(soonestSeconds, expiresAtSeconds);
    }
    const at = magnitude(count);
    generation[at] ??= new KeyQueue();
    generation[at].add(key);
  }

  // Expiries are the ends of a few windows, so there are few generations however many counters there are.
  function dropGeneration(expiresAtSeconds: number): void {
    generations.delete(expiresAtSeconds);
    soonestSeconds = Math.min(Number.POSITIVE_INFINITY, ...generations.keys());
  }

  function remove(key: string, { count, expiresAtSeconds }: StoredCounter): void {
    counters.delete(key);
    generations.get(expiresAtSeconds)?.[magnitude(count)]?.delete(key);
  }

  /** The counter to give up first; undefined when there is none. */
  function firstToGo(): [key: string, counter: StoredCounter] | undefined {
    while (soonestSeconds < Number.POSITIVE_INFINITY) {
      for (const keys of generations.get(soonestSeconds) ?? []) {
        // Magnitudes that no counter had yet are holes.
        const key = keys?.first();
        const counter = key === undefined ? undefined : counters.get(key);
        if (key !== undefined && counter !== undefined) return [key, counter];
      }
      dropGeneration(soonestSeconds);
    }
    return undefined;
  }

  function sweep(nowSeconds: number): void {
    for (let i = 0; i < sweptPerAdd && soonestSeconds <= nowSeconds; i += 1) {
      const first = firstToGo();
      if (first === undefined || first[1].expiresAtSeconds > nowSeconds) return;
      remove(...first);
    }
  }

  function evictOne(nowSeconds: number): void {
    const first = firstToGo();
    if (first === undefined) return;
    remove(...first);
    evicted += first[1].expiresAtSeconds > nowSeconds ? 1 : 0;
  }

  return {
    figures: () => ({ size: counters.size, evicted }),
    read(key, nowSeconds) {
      const counter = counters.get(key);
      return counter === undefined || counter.expiresAtSeconds <= nowSeconds ? 0 : counter.count;
    },
    add(key, addend, expiresAtSeconds, nowSeconds) {
      sweep(nowSeconds);
      let counter = counters.get(key);
      if (counter !== undefined && counter.expiresAtSeconds <= nowSeconds) {
        remove(key, counter);
        counter = undefined;
      }
      if (counter === undefined) {
        if (counters.size >= maxCounters) {
          evictOne(nowSeconds);
        }
        counter = { count: addend, expiresAtSeconds };
        counters.set(key, counter);
        place(key, counter);
        return addend;
      }
      const before = magnitude(counter.count);
      counter.count += addend;
      if (magnitude(counter.count) !== before) {
        generations.get(counter.expiresAtSeconds)?.[before]?.delete(key);
        place(key, counter);
      }
      return counter.count;
    },
  };
}

/** Position of the highest bit; 0 for 0. */
function magnitude(count: number): number {
  return count < 2 ? 0 : Math.floor(Math.log2(count));
}

/** What the memory backend takes. */
export interface MemoryBackendDeps {
  readonly nowSeconds: () => number;
  /** Most counters held at once; about 200 bytes each. */
  readonly maxCounters: number;
}

/** A backend that tells how full it is. */
export interface MemoryBackend extends CounterBackend {
  readonly figures: () => CounterStoreFigures;
}

/**
 * Longest key that is held as it is. Clients choose values, so a key can have megabytes; longer ones are held by their
 * hash, which bounds what `maxCounters` of them can take.
 */
const maxKeyLength = 256;

/** Redis counts in signed 64-bit integers; beyond, both backends refuse. */
const maxCount = 2 ** 63;

/**
 * Counters in the process itself: for development, tests and single instances. Nothing survives a restart and
 * nothing is shared.
 *
 * A counter is kept until its window ends, when no later request can name it.
 */
export function createMemoryBackend({ nowSeconds, maxCounters }: MemoryBackendDeps): MemoryBackend {
  const store = createCounterStore(maxCounters);

  function addOne(hit: CounterHit, now: number): number {
    const key = held(hit.key);
    const after = store.add(key, hit.addend, now + hit.secondsLeft, now);
    if (after >= maxCount) {
      store.add(key, -hit.addend, now + hit.secondsLeft, now);
      throw backendFailure('increment or decrement would overflow');
    }
    return after;
  }

  return {
    figures: store.figures,
    start: () => Promise.resolve(),
    close: () => Promise.resolve(),
    async read(hits) {
      const now = nowSeconds();
      return hits.map(({ key }) => store.read(held(key), now));
    },
    async add(hits) {
      const now = nowSeconds();
      return hits.map((hit) => addOne(hit, now));
    },
  };
}

function held(key: string): string {
  return key.length <= maxKeyLength ? key : createHash('sha256').update(key).digest('base64');
}

/** BACKEND_TYPE=memory. */
export const memoryBackend: BackendModule = {
  create({ memoryMaxCounters }, { nowSeconds, stats }) {
    const backend = createMemoryBackend({ nowSeconds, maxCounters: memoryMaxCounters });
    stats.gauge('ratelimit.memory.counters', () => backend.figures().size);
    stats.gauge('ratelimit.memory.evicted', () => backend.figures().evicted);
    return Promise.resolve(backend);
  },
};
