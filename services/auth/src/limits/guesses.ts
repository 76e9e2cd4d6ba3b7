import { createHash } from 'node:crypto';
import type { Millis } from '@tollgate/kit/time';
import type { Settings } from '../config/settings.ts';
import { type AccountLimit, dayMs, type GuessKind, limits, type NetworkLimit } from './table.ts';

/** How long a network stays known after a sign-in from it. */
export const knownNetworkMs = 90 * dayMs;
/**
 * Minimum age of a known network before it is stored again: one write a day instead of one per
 * sign-in.
 */
const storeAgainMs = dayMs;

/** Wrong guesses so far, and when the last of them was made. */
export interface WrongGuesses {
  readonly count: number;
  readonly lastMs: number;
}

/**
 * Keys of the counts of guesses. Keys are digests, so that neither contacts nor addresses are
 * stored.
 */
export interface GuessKeys {
  readonly kind: GuessKind;
  readonly account: string;
  /** Account and client network; absent if the network is unknown. */
  readonly network?: string | undefined;
  /** Key of a network from which the account was signed in; the same for all kinds of guesses. */
  readonly knownNetwork?: string | undefined;
  /**
   * For guesses of codes: the key of the account's codes, and the contact that they are sent to.
   */
  readonly code?: { readonly key: string; readonly contact: string } | undefined;
}

/**
 * `contact` is the normalized email or phone of the request, or another name of the account. It
 * need not belong to a user: limits must not enable user enumeration.
 */
export function guessKeys(kind: GuessKind, contact: string, network: string | undefined): GuessKeys {
  return {
    kind,
    account: digest(kind, contact),
    ...(network !== undefined && {
      network: digest(kind, contact, network),
      knownNetwork: digest(contact, network),
    }),
    ...(kind === 'code' && { code: { key: digest('message', contact), contact } }),
  };
}

export function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('base64url');
}

/** Counts of an account, as stored. */
export interface GuessCounts {
  readonly network: WrongGuesses | undefined;
  readonly account: WrongGuesses | undefined;
  /** Wrong guesses of codes for the contact, including those from known networks. */
  readonly code: WrongGuesses | undefined;
  /**
   * When the latest code was sent, Unix time in milliseconds; with `SVC_SECURITY_UNIFORM_ANSWERS`
   * when one was requested, whether or not there is a user to send it to.
   */
  readonly codeSentMs: number | undefined;
  /** When the account was last signed in from the network, Unix time in milliseconds. */
  readonly knownSinceMs: number | undefined;
}

/** Limits of a kind of guesses, which determine the retention of counts. */
export interface GuessLimits {
  readonly network: NetworkLimit;
  readonly account: AccountLimit;
}

export function guessLimits(kind: GuessKind, settings: Settings): GuessLimits {
  const { network, account } = limits[`wrong_${kind}`];
  return { network: network(settings), account: account(settings) };
}

/**
 * Whether the latest code was sent after the last wrong guess. A time in the future comes from a
 * database in another time zone, and does not count.
 */
export function isFreshCode(
  sentMs: number | undefined,
  wrong: WrongGuesses | undefined,
  nowMs: number,
): boolean {
  return sentMs !== undefined && sentMs <= nowMs && sentMs > (wrong?.lastMs ?? Number.NEGATIVE_INFINITY);
}

/** How long a network has to wait before its next guess for an account; 0 for no wait. */
export function networkWaitMs(wrong: WrongGuesses | undefined, limit: NetworkLimit, nowMs: number): Millis {
  if (wrong === undefined || wrong.count < limit.guesses) return 0;
  const elapsedMs = nowMs - wrong.lastMs;
  if (elapsedMs >= limit.rememberMs) return 0;
  const delayMs = Math.min(limit.maxDelayMs, limit.firstDelayMs * 2 ** (wrong.count - limit.guesses));
  return Math.max(0, delayMs - elapsedMs);
}

/** Time in which the count of an account drains by one. */
export function accountLeakMs({ guesses, periodMs }: AccountLimit): Millis {
  return periodMs / guesses;
}

/**
 * How long networks that are unknown to the account have to wait before the next guess; 0 for no
 * wait.
 */
export function accountWaitMs(wrong: WrongGuesses | undefined, limit: AccountLimit, nowMs: number): Millis {
  if (wrong === undefined) return 0;
  const leakMs = accountLeakMs(limit);
  const left = Math.max(0, wrong.count - (nowMs - wrong.lastMs) / leakMs);
  return left + 1 <= limit.guesses ? 0 : (left + 1 - limit.guesses) * leakMs;
}

/** How long the next guess has to wait. The first guess of a newly sent code never waits. */
export function guessWaitMs(counts: GuessCounts, limit: GuessLimits, nowMs: number): Millis {
  const { network, account, codeSentMs } = counts;
  const networkMs = isFreshCode(codeSentMs, network, nowMs)
    ? 0
    : networkWaitMs(network, limit.network, nowMs);
  const isExempt = isKnownNetwork(counts, nowMs) || isFreshCode(codeSentMs, account, nowMs);
  return Math.max(networkMs, isExempt ? 0 : accountWaitMs(account, limit.account, nowMs));
}

/** Whether the latest code has been guessed too often. Known networks are exempt. */
export function isSpentCode(counts: GuessCounts, limit: number, nowMs: number): boolean {
  const { code, codeSentMs } = counts;
  if (code === undefined || codeSentMs === undefined || isFreshCode(codeSentMs, code, nowMs)) return false;
  return code.count >= limit && !isKnownNetwork(counts, nowMs);
}

function isKnownNetwork({ knownSinceMs }: GuessCounts, nowMs: number): boolean {
  return knownSinceMs !== undefined && knownSinceMs + knownNetworkMs > nowMs;
}

/** Whether a right guess changes what is stored about its network. */
export function isWorthStoring({ network, knownSinceMs }: GuessCounts, nowMs: number): boolean {
  return network !== undefined || knownSinceMs === undefined || knownSinceMs + storeAgainMs <= nowMs;
}
