/** How long to wait between attempts. */
export interface Backoff {
  /** Upper bound of the first wait; it doubles with every attempt. */
  readonly baseDelayMs: number;
  /** No wait is longer than this. */
  readonly maxDelayMs: number;
}

/**
 * Exponential backoff with full jitter: anywhere between nothing and the bound, so that many clients that failed together
 * do not come back together. `random` is in [0, 1), attempts count from 1.
 */
export function backoffDelayMs(
  attempt: number,
  { baseDelayMs, maxDelayMs }: Backoff,
  random: number,
): number {
  // 2^52 and more would lose the factor to rounding; no bound is that long.
  const bound = Math.min(maxDelayMs, baseDelayMs * 2 ** Math.min(attempt - 1, 52));
  return Math.floor(random * bound);
}
