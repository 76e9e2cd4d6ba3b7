import type { Charge } from '@tollgate/rules/rule-set';
import type { Algorithm, CounterResult } from './algorithm.ts';

/** Hits on the counter of a window. */
interface WindowHits {
  /** Negative for a refund. */
  readonly addend: number;
  readonly capacity: number;
  readonly secondsLeft: number;
  /** Undefined for `allowed`. */
  readonly charge?: Charge | undefined;
}

/** The result of hits that were added, by the count after them. */
export function toWindowResult({ addend, capacity, secondsLeft }: WindowHits, count: number): CounterResult {
  return {
    allowed: addend < 0 || count <= capacity,
    used: count,
    // Other clients of the store may bring a counter below zero.
    remaining: Math.max(0, capacity - Math.max(0, count)),
    resetSeconds: secondsLeft,
  };
}

/**
 * Whether hits fit into a window that has a count. A check of 0 hits, which announces usage that is
 * reported after the response, needs a hit that is left where hits are charged in any case.
 */
export function fitsWindow({ addend, capacity, charge }: WindowHits, count: number): boolean {
  const needed = charge === 'always' && addend === 0 ? 1 : addend;
  return addend < 0 || count + needed <= capacity;
}

/** The result of hits that were not added, by the count without them. */
export function toUncountedResult(hits: WindowHits, count: number, allowed: boolean): CounterResult {
  const { addend, capacity, secondsLeft } = hits;
  return {
    allowed,
    used: allowed ? count : capacity + addend,
    remaining: Math.max(0, capacity - count),
    resetSeconds: secondsLeft,
  };
}

/**
 * The state is the count as text, which INCRBY changes; the function decides requests that are
 * counted by all of their limits or by none. It returns the count before the hits instead of a
 * wait.
 */
const lua = `
function takes.fixed_window(call, state)
  local count = max(0, tonumber(state or '0'))
  local after = max(0, count + call.hits)
  local needed = call.debt and call.needed or call.hits
  local taken = call.hits >= 0 and count + needed > call.limit and 0 or 1
  return taken, after, count, string.format('%.0f', after)
end`;

/** Counts hits in each window, with the commands and keys of envoyproxy/ratelimit. */
export const fixedWindow: Algorithm = {
  name: 'fixed_window',
  lua,
  hasBurst: false,
  holdsSlots: false,
};
