import type { Rate } from '@tollgate/rules/rule-set';
import type { Algorithm, CounterResult, RateAlgorithm, Taken } from './algorithm.ts';
import { concurrency } from './concurrency.ts';
import { fixedWindow } from './fixed-window.ts';
import { slidingWindow } from './sliding-window.ts';
import { tokenBucket } from './token-bucket.ts';

/** All algorithms with a state, by their names in rules. */
export const algorithms: Readonly<Record<Rate['algorithm'], RateAlgorithm>> = {
  token_bucket: tokenBucket,
  sliding_window: slidingWindow,
  concurrency,
};

export function getAlgorithm(rate: Rate | undefined): Algorithm {
  return rate === undefined ? fixedWindow : algorithms[rate.algorithm];
}

/** A response has 32 bits for it. 136 years, of a bucket with a large burst and a low rate. */
const maxResetSeconds = 0xffff_ffff;

/** Hits on a counter with a state. */
interface RateHits {
  /** Undefined for fixed windows, which have other results. */
  readonly rate?: Rate | undefined;
  readonly addend: number;
  readonly capacity: number;
  readonly secondsLeft: number;
}

/** The result of the request at `index` of several that were taken together. */
export function toRateResult(
  { rate, addend, capacity, secondsLeft }: RateHits,
  { taken, remaining: left, waitSeconds }: Taken,
  index = 0,
): CounterResult {
  if (rate === undefined) throw new TypeError('a fixed window has no state');
  if (index >= taken) {
    // Refused hits are shown as if they came after the last one that was allowed.
    const resetSeconds = Math.min(waitSeconds, maxResetSeconds);
    return { allowed: false, used: capacity + addend, remaining: 0, resetSeconds };
  }
  const remaining = left + (taken - 1 - index) * addend;
  const used = capacity - remaining;
  const resetSeconds = algorithms[rate.algorithm].getResetSeconds({ rate, used, secondsLeft });
  return {
    allowed: true,
    used,
    remaining,
    resetSeconds: Math.min(Math.max(1, resetSeconds), maxResetSeconds),
  };
}
