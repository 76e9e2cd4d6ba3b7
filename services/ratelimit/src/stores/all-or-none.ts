import type { CounterResult, State } from '../algorithms/algorithm.ts';
import { fitsWindow, toUncountedResult } from '../algorithms/fixed-window.ts';
import { algorithms, toRateResult } from '../algorithms/registry.ts';
import type { Hit } from './counter-store.ts';

/**
 * Effect of an exceeded limit on the request: refuses it, refuses it when all limits of the kind
 * `together` are exceeded, or none.
 */
export type Refuses = 'alone' | 'together' | 'never';

/**
 * Whether a request is refused by its limits, some of which are exceeded. `redis/scripts.ts` has
 * the same rule in Lua.
 */
export function isRefused<T>(
  limits: readonly T[],
  refuses: (limit: T, index: number) => Refuses,
  isExceeded: (limit: T, index: number) => boolean,
): boolean {
  let index = 0;
  let together = 0;
  let togetherExceeded = 0;
  for (const limit of limits) {
    const kind = refuses(limit, index);
    const exceeded = kind !== 'never' && isExceeded(limit, index);
    if (exceeded && kind === 'alone') return true;
    if (kind === 'together') {
      together += 1;
      togetherExceeded += exceeded ? 1 : 0;
    }
    index += 1;
  }
  return together > 0 && togetherExceeded === together;
}

/** A hit of a request that is counted by all of its limits, or by none. */
export interface ConditionalHit extends Hit {
  readonly refuses: Refuses;
}

export interface AllOrNone {
  /** The request is refused, and nothing was counted but the hits with `charge: always`. */
  readonly refused: boolean;
  /**
   * Hits that were counted have the results of `take`, except that a window without a hit left
   * refuses a check of 0 hits whose usage is charged in any case. Other hits of a refused request
   * have the result without them: `allowed` says whether they would fit.
   */
  readonly results: readonly CounterResult[];
}

/** Reads counters. */
interface Counters {
  count(key: string): number;
  state(key: string): State;
}

/** A result of `take`, as one of a request that is counted as a whole. */
export function toCountedResult(hit: Hit, result: CounterResult): CounterResult {
  const isFull = hit.rate === undefined && hit.addend === 0 && !fitsWindow(hit, result.used);
  return isFull && result.allowed ? { ...result, allowed: false } : result;
}

/**
 * The results of a request that is refused, all without its hits; undefined when it is not. Hits of
 * the request with the same key are added up. `redis/scripts.ts` has the same steps in Lua.
 */
export function getRefusal(
  hits: readonly ConditionalHit[],
  counters: Counters,
  nowUs: number,
): readonly CounterResult[] | undefined {
  const counts = new Map<string, number>();
  const states = new Map<string, State>();
  const results = hits.map((hit) => {
    const { key, addend, rate } = hit;
    if (rate === undefined) {
      const count = Math.max(0, counters.count(key));
      const before = counts.get(key) ?? count;
      counts.set(key, Math.max(0, before + addend));
      return toUncountedResult(hit, count, fitsWindow(hit, before));
    }
    const { take } = algorithms[rate.algorithm];
    const stored = counters.state(key);
    const taken = take(rate, states.get(key) ?? stored, { hits: addend, times: 1, nowUs });
    if (taken.state !== undefined) states.set(key, taken.state);
    if (taken.taken === 0) return toRateResult(hit, taken);
    const { remaining } = take(rate, stored, { hits: 0, times: 1, nowUs });
    return toRateResult(hit, { taken: 1, remaining, waitSeconds: 0 });
  });
  const refused = isRefused(
    hits,
    ({ refuses }) => refuses,
    (_, i) => results[i]?.allowed === false,
  );
  return refused ? results : undefined;
}
