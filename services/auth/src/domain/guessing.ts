import type { Millis } from '@tollgate/kit/duration';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Below the limit, the count of a network is reset after this time without a wrong guess. */
export const forgetMs = 10 * minuteMs;
/** From the limit on, it is kept for longer, so that a pause does not reset the delay. */
export const rememberMs = dayMs;
/** Delay of the next guess at the limit. It doubles with each further wrong guess. */
const firstDelayMs = minuteMs;
const maxDelayMs = hourMs;
/** Time in which a full count of an account drains. */
const accountPeriodMs = hourMs;
/** How long a network stays known after a sign-in from it. */
export const knownNetworkMs = 90 * dayMs;

/** Wrong guesses so far, and when the last of them was made. */
export interface WrongGuesses {
  readonly count: number;
  readonly lastMs: number;
}

/**
 * Whether the latest code was sent after the last wrong guess. A time in the future comes from a database in another time zone, and
 * does not count.
 */
export function isFreshCode(
  sentMs: number | undefined,
  wrong: WrongGuesses | undefined,
  nowMs: number,
): boolean {
  return sentMs !== undefined && sentMs <= nowMs && sentMs > (wrong?.lastMs ?? Number.NEGATIVE_INFINITY);
}

/** How long a network has to wait before its next guess for an account; 0 for no wait. */
export function networkWaitMs(wrong: WrongGuesses | undefined, limit: number, nowMs: number): Millis {
  if (wrong === undefined || wrong.count < limit) return 0;
  const elapsedMs = nowMs - wrong.lastMs;
  if (elapsedMs >= rememberMs) return 0;
  return Math.max(0, Math.min(maxDelayMs, firstDelayMs * 2 ** (wrong.count - limit)) - elapsedMs);
}

/** Time in which the count of an account drains by one. */
export function accountLeakMs(limit: number): Millis {
  return accountPeriodMs / limit;
}

/** How long networks that are unknown to the account have to wait before the next guess; 0 for no wait. */
export function accountWaitMs(wrong: WrongGuesses | undefined, limit: number, nowMs: number): Millis {
  if (wrong === undefined) return 0;
  const leakMs = accountLeakMs(limit);
  const left = Math.max(0, wrong.count - (nowMs - wrong.lastMs) / leakMs);
  return left + 1 <= limit ? 0 : (left + 1 - limit) * leakMs;
}
