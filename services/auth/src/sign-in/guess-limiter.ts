import { createHash } from 'node:crypto';
import type { Millis } from '@tollgate/kit/time';
import type { Context } from '../context.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { QueueFull, WorkQueue } from '../messages/background.ts';
import type { GuessCounts, GuessKeys, GuessLimits } from './guess-store.ts';

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

export interface Guess {
  readonly kind: 'password' | 'code';
  /** Normalized email or phone of the request. It need not belong to a user: limits must not enable user enumeration. */
  readonly contact: string;
}

type LimiterContext = Pick<Context, 'store' | 'settings' | 'logger'>;

/** Waiting guesses per account and network. */
const maxWaiting = 50;
const queueFullRetrySeconds = 2;
/** Minimum age of a known network before it is stored again: one write a day instead of one per sign-in. */
const storeAgainMs = 24 * 3_600_000;

/**
 * Limits wrong passwords and codes per account and client network, and with a higher limit per account. Networks from which the
 * account was signed in are exempt from the limit of the account, so that an attacker cannot lock the owner out.
 *
 * Guesses for one account from one network run one after the other: concurrent ones must not exceed the limit.
 */
export class GuessLimiter {
  readonly #context: LimiterContext;
  /** Queues by kind, account and network; removed when idle. */
  readonly #turns = new Map<string, { readonly queue: WorkQueue; guesses: number }>();

  constructor(context: LimiterContext) {
    this.#context = context;
  }

  /**
   * Runs `attempt`, which returns undefined for a wrong guess. A guess that throws is not counted.
   *
   * @throws AppError `over_request_rate_limit`, before the attempt, after too many wrong guesses.
   */
  async guess<T extends object>(
    guess: Guess,
    metadata: RequestMetadata,
    attempt: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const keys = toKeys(guess, metadata.clientNetwork);
    return this.#inTurn(keys.network ?? keys.account, async () => {
      const { guesses } = this.#context.store;
      const limits = this.#limits(guess.kind);
      const counts = await guesses.read(keys);
      const waitMs = getWaitMs(counts, limits, metadata.nowMs);
      if (waitMs > 0) {
        const retryAfterSeconds = Math.ceil(waitMs / 1000);
        this.#context.logger.info(
          { request_id: metadata.requestId, kind: guess.kind, retry_after_seconds: retryAfterSeconds },
          'guess rejected',
        );
        throw new RetryLaterError(errors.over_request_rate_limit(), retryAfterSeconds);
      }
      const isSpent = isSpentCode(counts, this.#context.settings.wrongCodesPerMessage, metadata.nowMs);
      // Runs for a used-up code as well: the amount of work must not disclose whether one was sent.
      const found = await attempt();
      const right = isSpent ? undefined : found;
      if (right === undefined) await guesses.countWrong(keys, limits, metadata.nowMs);
      else if (keys.network !== undefined && isWorthStoring(counts, metadata.nowMs))
        await guesses.countRight(keys, metadata.nowMs);
      return right;
    });
  }

  #limits(kind: Guess['kind']): GuessLimits {
    const { settings } = this.#context;
    return kind === 'password'
      ? { perNetwork: settings.wrongPasswordsPerNetwork, perAccount: settings.wrongPasswordsPerAccount }
      : { perNetwork: settings.wrongCodesPerNetwork, perAccount: settings.wrongCodesPerAccount };
  }

  async #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#turns.get(key) ?? {
      queue: new WorkQueue({ concurrency: 1, maxWaiting }),
      guesses: 0,
    };
    this.#turns.set(key, turn);
    turn.guesses++;
    try {
      return await turn.queue.run(work);
    } catch (error) {
      if (error instanceof QueueFull)
        throw new RetryLaterError(errors.over_request_rate_limit(), queueFullRetrySeconds);
      throw error;
    } finally {
      if (--turn.guesses === 0) this.#turns.delete(key);
    }
  }
}

function toKeys({ kind, contact }: Guess, network: string | undefined): GuessKeys {
  return {
    account: digest(kind, contact),
    ...(network !== undefined && {
      network: digest(kind, contact, network),
      knownNetwork: digest(contact, network),
    }),
    ...(kind === 'code' && { code: { key: digest('message', contact), contact } }),
  };
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('base64url');
}

/** How long the next guess has to wait. The first guess of a newly sent code never waits. */
function getWaitMs(counts: GuessCounts, { perNetwork, perAccount }: GuessLimits, nowMs: number): number {
  const { network, account, codeSentMs } = counts;
  const networkMs = isFreshCode(codeSentMs, network, nowMs) ? 0 : networkWaitMs(network, perNetwork, nowMs);
  const isExempt = isKnownNetwork(counts, nowMs) || isFreshCode(codeSentMs, account, nowMs);
  return Math.max(networkMs, isExempt ? 0 : accountWaitMs(account, perAccount, nowMs));
}

/** Whether the latest code has been guessed too often. Known networks are exempt. */
function isSpentCode(counts: GuessCounts, limit: number, nowMs: number): boolean {
  const { code, codeSentMs } = counts;
  if (code === undefined || codeSentMs === undefined || isFreshCode(codeSentMs, code, nowMs)) return false;
  return code.count >= limit && !isKnownNetwork(counts, nowMs);
}

function isKnownNetwork({ knownSinceMs }: GuessCounts, nowMs: number): boolean {
  return knownSinceMs !== undefined && knownSinceMs + knownNetworkMs > nowMs;
}

function isWorthStoring({ network, knownSinceMs }: GuessCounts, nowMs: number): boolean {
  return network !== undefined || knownSinceMs === undefined || knownSinceMs + storeAgainMs <= nowMs;
}
