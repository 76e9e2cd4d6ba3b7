import type { CounterResult } from '../../src/algorithms/algorithm.ts';
import type { AllOrNone, ConditionalHit } from '../../src/stores/all-or-none.ts';
import type { Hit } from '../../src/stores/counter-store.ts';

/** A result in short: the count of a window, else what remains, or `-1 - seconds` when refused. */
function toCount({ rate }: Pick<Hit, 'rate'>, { allowed, used, remaining, resetSeconds }: CounterResult) {
  if (rate === undefined) return used;
  return allowed ? remaining : -1 - resetSeconds;
}

/**
 * Counts of a whole request; `-1 - count` for windows whose hits do not fit and are not counted.
 */
export function toCounts(hits: readonly ConditionalHit[], { refused, results }: AllOrNone) {
  const counts = results.map((result, i) => {
    const hit = hits[i];
    if (hit === undefined) throw new TypeError('a result without a hit');
    const isCounted = !refused || hit.charge === 'always';
    return isCounted || hit.rate !== undefined || result.allowed
      ? toCount(hit, result)
      : -1 - (hit.capacity - result.remaining);
  });
  return { refused, counts };
}

type Counting<T extends 'take' | 'peek', H> = {
  readonly [name in T]: (hits: readonly H[]) => Promise<readonly CounterResult[]>;
};

export async function take<H extends Pick<Hit, 'rate'>>(
  store: Counting<'take', H>,
  hits: readonly H[],
): Promise<number[]> {
  return shorten(hits, await store.take(hits));
}

export async function peek<H extends Pick<Hit, 'rate'>>(
  store: Counting<'peek', H>,
  hits: readonly H[],
): Promise<number[]> {
  return shorten(hits, await store.peek(hits));
}

function shorten(hits: readonly Pick<Hit, 'rate'>[], results: readonly CounterResult[]): number[] {
  return results.map((result, i) => toCount(hits[i] ?? {}, result));
}
