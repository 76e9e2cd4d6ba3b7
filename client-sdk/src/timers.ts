import { ConfigurationError } from './errors.ts';

/** The longest that a timer waits. A longer one fires at once, in Node and in browsers. */
export const longestTimerMs = 2 ** 31 - 1;

/** What is wrong with a number of milliseconds for a timer; undefined when nothing is. */
export function timerProblem(ms: number): string | undefined {
  if (!(Number.isFinite(ms) && ms >= 0)) return 'must be a number of 0 or more';
  return ms > longestTimerMs ? `must be at most ${longestTimerMs} ms (24.8 days)` : undefined;
}

/** @throws {ConfigurationError} when a timer cannot wait so long, or the number is none. */
export function assertTimer(name: string, ms: number): void {
  const problem = timerProblem(ms);
  if (problem !== undefined) throw new ConfigurationError(`\`${name}\` ${problem}`);
}

/** Resolves after that many milliseconds; rejects with the signal's reason when it is aborted first. */
export type Sleep = (ms: number, options?: { signal?: AbortSignal | undefined }) => Promise<void>;

/** Sleeps by the machine's timers. Rejects with a ConfigurationError for a time that they do not wait. */
export const sleep: Sleep = (ms, { signal } = {}) =>
  new Promise((resolve, reject) => {
    assertTimer('the wait', ms);
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });

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
