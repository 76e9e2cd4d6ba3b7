import { type State, take, toResult } from './algorithms.ts';
import type { Hit } from './counter-backend.ts';

/** A hit of a request that is counted by all of its limits, or by none. */
export interface ConditionalHit extends Hit {
  /** Hits that a fixed window allows. */
  readonly capacity: number;
  /**
   * What exceeding the limit does to the request: refuses it, refuses it when all hits of the kind
   * `together` exceed theirs, or nothing.
   */
  readonly refuses: 'alone' | 'together' | 'never';
}

export interface AllOrNone {
  /** The request is refused, and nothing was counted. */
  readonly refused: boolean;
  /**
   * Of a request that is not refused those of `add`. Of a refused one what the counter is without
   * its hits; for each limit that the hits exceed a negative number instead: `-1 - count` of a
   * fixed window, else `-1 - seconds` until the hits would be allowed.
   */
  readonly counts: readonly number[];
}

/** Reads counters. */
interface Counters {
  count(key: string): number;
  state(key: string): State;
}

/**
 * The counts of a request that is refused; undefined when it is not. Hits of the request with the
 * same key are added up. `redis/scripts.ts` has the same steps in Lua.
 */
export function getRefusal(
  hits: readonly ConditionalHit[],
  counters: Counters,
  nowUs: number,
): readonly number[] | undefined {
  const counts = new Map<string, number>();
  const states = new Map<string, State>();
  const results = hits.map(({ key, addend, capacity, rate }) => {
    if (rate === undefined) {
      const count = Math.max(0, counters.count(key));
      const after = Math.max(0, (counts.get(key) ?? count) + addend);
      counts.set(key, after);
      return addend >= 0 && after > capacity ? -1 - count : count;
    }
    const stored = counters.state(key);
    const taken = take(rate, states.get(key) ?? stored, { hits: addend, times: 1, nowUs });
    if (taken.state !== undefined) states.set(key, taken.state);
    return taken.taken === 0
      ? toResult(taken, addend, 0)
      : take(rate, stored, { hits: 0, times: 1, nowUs }).remaining;
  });
  return isRefused(hits, results) ? results : undefined;
}

/** The condition of `getOverallCode`. */
function isRefused(hits: readonly ConditionalHit[], results: readonly number[]): boolean {
  let together = 0;
  let togetherOver = 0;
  for (const [i, { refuses }] of hits.entries()) {
    const isOver = (results[i] ?? 0) < 0;
    if (isOver && refuses === 'alone') return true;
    if (refuses !== 'together') continue;
    together += 1;
    togetherOver += isOver ? 1 : 0;
  }
  return together > 0 && together === togetherOver;
}
