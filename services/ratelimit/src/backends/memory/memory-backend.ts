import { createHash } from 'node:crypto';
import { backendFailure } from '../../errors.ts';
import type { CounterBackend, CounterHit } from '../../ports/counter-backend.ts';
import { type CounterStoreFigures, createCounterStore } from './counter-store.ts';

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
