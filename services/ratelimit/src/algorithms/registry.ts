import type { Rate } from '@tollgate/rules/rule-set';
import type { Algorithm, State, Taken, TakeRequest } from './algorithm.ts';
import { concurrency } from './concurrency.ts';
import { slidingWindow } from './sliding-window.ts';
import { tokenBucket } from './token-bucket.ts';

/** All algorithms but fixed windows, by their names in rules. */
export const algorithms: Readonly<Record<Rate['algorithm'], Algorithm>> = {
  token_bucket: tokenBucket,
  sliding_window: slidingWindow,
  concurrency,
};

/** @see Algorithm.take */
export function take(rate: Rate, state: State, request: TakeRequest): Taken {
  return algorithms[rate.algorithm].take(rate, state, request);
}

/**
 * One request's part as a number, so that it passes through batches as the count of a fixed window
 * does: what remains after it (0 or more), or `-1 - seconds` until it would be allowed.
 */
export function toResult({ taken, remaining, waitSeconds }: Taken, hits: number, index: number): number {
  return index < taken ? remaining + (taken - 1 - index) * hits : -1 - waitSeconds;
}

/** What a result says. */
export function readResult(result: number): { readonly remaining: number; readonly retrySeconds: number } {
  return result < 0 ? { remaining: 0, retrySeconds: -1 - result } : { remaining: result, retrySeconds: 0 };
}
