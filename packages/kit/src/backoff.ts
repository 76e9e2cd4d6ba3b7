import { monotonicNow, sleepFor } from './time.ts';

/** Exponential backoff. */
export type BackoffOptions = {
  /** The first delay. */
  readonly initialMs: number;
  /** Maximum delay, including jitter. */
  readonly maxMs: number;
  /** Growth per attempt; 1 or more. Default 2. */
  readonly factor?: number;
  /** Fraction by which a delay is randomly shorter or longer; 0 to 1. Default 0. */
  readonly jitter?: number;
  /** Default `Math.random`. */
  readonly random?: () => number;
};

/**
 * Returns the function from an attempt (counted from 1) to the delay after it: `initialMs`,
 * multiplied by `factor` each time, up to `maxMs`, with `jitter`.
 */
export function backoffDelays(options: BackoffOptions): (attempt: number) => number {
  const { initialMs, maxMs, jitter = 0, random = Math.random } = options;
  // A factor below 1 would shorten the delays.
  const factor = Math.max(1, options.factor ?? 2);
  return (attempt) => {
    // Zero is a special case: multiplied by an overflowed power it would be NaN.
    const baseMs = initialMs === 0 ? 0 : Math.min(maxMs, initialMs * factor ** (attempt - 1));
    return Math.min(maxMs, baseMs * (1 + jitter * (2 * random() - 1)));
  };
}

/** Options of a retry. */
export type RetryOptions = {
  readonly backoff: BackoffOptions;
  /** Ends the attempts and the delays between them. */
  readonly signal?: AbortSignal;
  /** No attempt starts later than this after the first one; 0 means no limit. Default 0. */
  readonly maxElapsedMs?: number;
  /** Whether another attempt may help; all errors by default. */
  readonly isRetryable?: (error: unknown) => boolean;
  /** Called before each wait. */
  readonly onRetry?: (failure: {
    readonly error: unknown;
    readonly attempt: number;
    readonly delayMs: number;
  }) => void;
  readonly sleep?: (ms: number, options: { readonly signal?: AbortSignal }) => Promise<unknown>;
  /** A monotonic clock in milliseconds. Default `performance.now`. */
  readonly now?: () => number;
};

/**
 * Calls an idempotent function until it succeeds, waiting longer after each failure. `attempt`
 * counts from 1. Rejects with the last error when it is not retryable or `maxElapsedMs` would be
 * exceeded, and with the signal's reason once that aborts.
 */
export async function retry<T>(fn: (attempt: number) => Promise<T> | T, options: RetryOptions): Promise<T> {
  const {
    signal,
    maxElapsedMs = 0,
    isRetryable = () => true,
    onRetry,
    sleep = sleepFor,
    now = monotonicNow,
  } = options;
  const delayAfter = backoffDelays(options.backoff);
  const startedMs = now();
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await fn(attempt);
    } catch (error) {
      signal?.throwIfAborted();
      const delayMs = delayAfter(attempt);
      const tooLate = maxElapsedMs > 0 && now() - startedMs + delayMs > maxElapsedMs;
      if (tooLate || !isRetryable(error)) throw error;
      onRetry?.({ error, attempt, delayMs });
      await sleep(delayMs, { ...(signal && { signal }) });
    }
  }
}
