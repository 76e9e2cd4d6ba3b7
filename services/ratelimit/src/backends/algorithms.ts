import type { AlgorithmOptions } from '@tollgate/rules/rule-set';

/** A limit that is not counted in fixed windows. */
export interface Rate extends AlgorithmOptions {
  /** Requests per period. */
  readonly limit: number;
  readonly periodSeconds: number;
}

/** Stored text of a counter, or undefined when it does not exist. */
type State = string | undefined;

/** The state after a hit, and its result; the state is unchanged when undefined. */
interface Taken {
  readonly state?: string;
  /** How long the state matters, milliseconds. */
  readonly ttlMs?: number;
  readonly result: number;
}

// Sums of fractions are off by far less; without it the third of three refills would be missing.
const epsilon = 1e-6;

/**
 * Takes hits from a limit, or gives them back when negative. A refused hit takes nothing.
 *
 * The result is one number, so that it passes through batches as the count of a fixed window does:
 * what remains (0 or more), or, when refused, `-1 - seconds` until the hits would be allowed.
 * `redis/scripts.ts` has the same steps in Lua, and a test that compares them.
 */
export function take(rate: Rate, state: State, { hits, nowUs }: { hits: number; nowUs: number }): Taken {
  return rate.algorithm === 'token_bucket'
    ? takeFromBucket(rate, state, hits, nowUs)
    : takeFromSlidingWindow(rate, state, hits, nowUs);
}

/** State: the tokens at a time. */
function takeFromBucket(rate: Rate, state: State, hits: number, nowUs: number): Taken {
  const { limit, burst } = rate;
  const periodUs = rate.periodSeconds * 1e6;
  let tokens = burst;
  let atUs = nowUs;
  if (state !== undefined) {
    const [stored = 0, storedAtUs = 0] = state.split(' ').map(Number);
    // A clock that stepped back refills nothing.
    atUs = Math.max(nowUs, storedAtUs);
    tokens = Math.min(burst, stored + ((atUs - storedAtUs) * limit) / periodUs);
  }
  if (hits > 0 && hits > tokens + epsilon) {
    const isPossible = hits <= burst && limit > 0;
    return refused(isPossible ? ((hits - tokens) * periodUs) / limit : periodUs);
  }
  tokens = Math.min(burst, tokens - hits);
  const result = Math.max(0, Math.floor(tokens + epsilon));
  if (hits === 0 || limit === 0) return { result };
  const ttlMs = Math.ceil(((burst - tokens) * periodUs) / limit / 1000) + 1000;
  return { state: `${tokens} ${atUs}`, ttlMs, result };
}

/**
 * State: the number of a window, and the hits in the window before it and in it. The window before
 * counts by the part of it that is within one period from now, as if its hits were spread evenly.
 */
function takeFromSlidingWindow(rate: Rate, state: State, hits: number, nowUs: number): Taken {
  const { limit } = rate;
  const periodUs = rate.periodSeconds * 1e6;
  let index = Math.floor(nowUs / periodUs);
  let elapsed = nowUs / periodUs - index;
  let before = 0;
  let current = 0;
  if (state !== undefined) {
    const [storedIndex = 0, storedBefore = 0, storedCurrent = 0] = state.split(' ').map(Number);
    if (storedIndex > index) {
      // A clock that stepped back stays at the start of the window.
      index = storedIndex;
      elapsed = 0;
    }
    if (storedIndex === index) [before, current] = [storedBefore, storedCurrent];
    else if (storedIndex === index - 1) before = storedCurrent;
  }
  const used = before * (1 - elapsed) + current;
  if (hits > 0 && used + hits > limit + epsilon) {
    if (hits > limit) return refused(periodUs);
    const wait =
      current + hits <= limit
        ? 1 - (limit - current - hits) / before - elapsed
        : 1 - elapsed + Math.max(0, 1 - (limit - hits) / current);
    return refused(wait * periodUs);
  }
  current += hits;
  if (current < 0) {
    before = Math.max(0, before + current);
    current = 0;
  }
  const result = Math.max(0, Math.floor(limit - (before * (1 - elapsed) + current) + epsilon));
  if (hits === 0) return { result };
  const ttlMs = Math.ceil(((2 - elapsed) * periodUs) / 1000) + 1000;
  return { state: `${index} ${before} ${current}`, ttlMs, result };
}

function refused(waitUs: number): Taken {
  return { result: -1 - Math.max(1, Math.ceil(waitUs / 1e6 - epsilon)) };
}

/** What a result says. */
export function readTaken(result: number): { readonly remaining: number; readonly retrySeconds: number } {
  return result < 0 ? { remaining: 0, retrySeconds: -1 - result } : { remaining: result, retrySeconds: 0 };
}
