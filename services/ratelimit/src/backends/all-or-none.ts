import type { Charge } from '@tollgate/rules/rule-set';
import type { State } from '../algorithms/algorithm.ts';
import { take, toResult } from '../algorithms/registry.ts';
import type { Hit } from './counter-backend.ts';

/**
 * What exceeding a limit does to the request: refuses it, refuses it when all limits of the kind
 * `together` are exceeded, or nothing.
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
  /** Hits that a fixed window allows. */
  readonly capacity: number;
  readonly refuses: Refuses;
  /** `always`: the hits are counted even if the request is refused. Absent for `allowed`. */
  readonly charge?: Charge | undefined;
}

export interface AllOrNone {
  /** The request is refused, and nothing was counted but the hits with `charge: always`. */
  readonly refused: boolean;
  /**
   * A request that is not refused, and hits with `charge: always`, get the counts of `add`. Other
   * hits of a refused request get the count without them. Where they exceed the limit, it is
   * negative: `-1 - count` for a fixed window, else `-1 - seconds` until they would be allowed.
   */
  readonly counts: readonly number[];
}

/** Reads counters. */
interface Counters {
  count(key: string): number;
  state(key: string): State;
}

/**
 * The counts of a request that is refused, all without its hits; undefined when it is not. Hits of
 * the request with the same key are added up. `redis/scripts.ts` has the same steps in Lua.
 */
export function getRefusal(
  hits: readonly ConditionalHit[],
  counters: Counters,
  nowUs: number,
): readonly number[] | undefined {
  const counts = new Map<string, number>();
  const states = new Map<string, State>();
  const results = hits.map(({ key, addend, capacity, rate, charge }) => {
    if (rate === undefined) {
      const count = Math.max(0, counters.count(key));
      const after = Math.max(0, (counts.get(key) ?? count) + addend);
      counts.set(key, after);
      // Usage that is reported after the response needs a hit that is left.
      const isReached = charge === 'always' && addend === 0 && after >= capacity;
      return isReached || (addend >= 0 && after > capacity) ? -1 - count : count;
    }
    const stored = counters.state(key);
    const taken = take(rate, states.get(key) ?? stored, { hits: addend, times: 1, nowUs });
    if (taken.state !== undefined) states.set(key, taken.state);
    return taken.taken === 0
      ? toResult(taken, addend, 0)
      : take(rate, stored, { hits: 0, times: 1, nowUs }).remaining;
  });
  const refused = isRefused(
    hits,
    ({ refuses }) => refuses,
    (_, i) => (results[i] ?? 0) < 0,
  );
  return refused ? results : undefined;
}
