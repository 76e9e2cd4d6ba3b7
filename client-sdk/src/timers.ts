import { ConfigurationError } from './errors.ts';

/** The longest timer. Longer ones fire immediately, in Node and in browsers. */
export const longestTimerMs = 2 ** 31 - 1;

/** Why a timer does not support a number of milliseconds; undefined if it does. */
export function timerProblem(ms: number): string | undefined {
  if (!(Number.isFinite(ms) && ms >= 0)) return 'must be a number of 0 or more';
  return ms > longestTimerMs ? `must be at most ${longestTimerMs} ms (24.8 days)` : undefined;
}

/** @throws {ConfigurationError} if timers do not support the number. */
export function assertTimer(name: string, ms: number): void {
  const problem = timerProblem(ms);
  if (problem !== undefined) throw new ConfigurationError(`\`${name}\` ${problem}`);
}

/**
 * Resolves after that many milliseconds; rejects with the signal's reason if it is aborted before.
 */
export type Sleep = (ms: number, options?: { signal?: AbortSignal | undefined }) => Promise<void>;

/** The default Sleep. Rejects with a ConfigurationError for a time that timers do not support. */
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

/** Bounds of the waits between attempts. */
export interface Backoff {
  /** Upper bound of the first wait, doubled with every attempt. */
  readonly baseDelayMs: number;
  /** Upper bound of all waits. */
  readonly maxDelayMs: number;
}

/**
 * Exponential backoff with full jitter, so that clients that failed together do not retry together.
 * `random` is in [0, 1), attempts count from 1.
 */
export function backoffDelayMs(
  attempt: number,
  { baseDelayMs, maxDelayMs }: Backoff,
  random: number,
): number {
  // Larger exponents lose precision, and every bound is smaller.
  const bound = Math.min(maxDelayMs, baseDelayMs * 2 ** Math.min(attempt - 1, 52));
  return Math.floor(random * bound);
}
