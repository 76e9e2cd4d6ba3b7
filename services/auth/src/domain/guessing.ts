import type { Millis } from '@tollgate/kit/duration';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Wrong guesses below the limit of a network are forgotten after so much time without one. */
export const forgetMs = 10 * minuteMs;
/** Once the limit is reached they are remembered for longer, so that a pause does not end the delays. */
export const rememberMs = dayMs;
/** After the limit the next guess has to wait for so long, after each further one twice as long … */
const firstDelayMs = minuteMs;
/** … up to this. */
const maxDelayMs = hourMs;
/** In so much time as many wrong guesses for an account are forgotten as its limit allows. */
const accountPeriodMs = hourMs;
/** A network from which an account was signed in is known for so long. */
export const knownNetworkMs = 90 * dayMs;

/** Wrong guesses so far, and when the last of them was made. */
export interface WrongGuesses {
  readonly count: number;
  readonly lastMs: number;
}

/**
 * Was the latest code sent after the last wrong guess? A time that lies ahead is of a database whose clock, or time zone, is another
 * one: it makes no code fresh.
 */
export function isFreshCode(
  sentMs: number | undefined,
  wrong: WrongGuesses | undefined,
  nowMs: number,
): boolean {
  return sentMs !== undefined && sentMs <= nowMs && sentMs > (wrong?.lastMs ?? Number.NEGATIVE_INFINITY);
}

/** How long a network has to wait before its next guess for an account; 0 when it need not. */
export function networkWaitMs(wrong: WrongGuesses | undefined, limit: number, nowMs: number): Millis {
  if (wrong === undefined || wrong.count < limit) return 0;
  const elapsedMs = nowMs - wrong.lastMs;
  if (elapsedMs >= rememberMs) return 0;
  return Math.max(0, Math.min(maxDelayMs, firstDelayMs * 2 ** (wrong.count - limit)) - elapsedMs);
}

/** How long it takes until one of the wrong guesses for an account is forgotten. */
export function accountLeakMs(limit: number): Millis {
  return accountPeriodMs / limit;
}

/** How long all networks that the account does not know have to wait before their next guess; 0 when they need not. */
export function accountWaitMs(wrong: WrongGuesses | undefined, limit: number, nowMs: number): Millis {
  if (wrong === undefined) return 0;
  const leakMs = accountLeakMs(limit);
  const left = Math.max(0, wrong.count - (nowMs - wrong.lastMs) / leakMs);
  return left + 1 <= limit ? 0 : (left + 1 - limit) * leakMs;
}
