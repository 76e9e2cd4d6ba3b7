import type { AppError } from '@tollgate/kit/errors';
import type { Millis } from '@tollgate/kit/time';
import { settingsSpec } from '../config/settings.ts';
import type { BaseContext } from '../context.ts';
import { errors, RetryLaterError } from '../errors.ts';
import { guessKeys, guessLimits, guessWaitMs, isSpentCode, isWorthStoring } from './guesses.ts';
import { InstanceBuckets } from './instance-buckets.ts';
import type { LimitStore, QuotaResult } from './store.ts';
import {
  type ClientLimit,
  type EventLimit,
  type GuessKind,
  guessKinds,
  limits,
  refusals,
  type SpacedEvent,
} from './table.ts';
import { Turns } from './turns.ts';

/** The client of a request. */
export interface LimitedClient {
  /**
   * An IPv4 address, an IPv6 network, or the value of `RATE_LIMIT_HEADER`. Undefined if it is
   * hidden by a proxy that the settings do not trust.
   */
  readonly key: string | undefined;
  /** Address of the connection. */
  readonly peer: string | undefined;
}

interface Guess {
  readonly kind: GuessKind;
  /** Names the account, as in `guessKeys`. */
  readonly contact: string;
  /** Called for the wrong guess with which the account reaches its limit. */
  readonly onAccountLimit?: () => Promise<void>;
}

/** Part of the metadata of a request. */
interface Guesser {
  readonly nowMs: number;
  readonly clientNetwork?: string | undefined;
  readonly requestId: string;
}

type LimiterContext = Pick<BaseContext, 'settings' | 'logger' | 'metrics' | 'nowMs'> & {
  readonly store: { readonly limits: LimitStore };
};

const tooManyRetrySeconds = 2;
const unknownSignUp = 'unknown_sign_up';

/**
 * Limits requests, messages and wrong guesses as the table of limits says, for all replicas.
 *
 * Behind a proxy that the settings do not trust, clients cannot be distinguished: they share a
 * larger limit in each instance.
 */
export class Limiter {
  readonly #context: LimiterContext;
  readonly #shared = new InstanceBuckets<ClientLimit | typeof unknownSignUp>();
  /** Concurrent guesses of an account from one network must not exceed the limit. */
  readonly #turns = new Turns();
  #hasWarned: boolean = false;

  constructor(context: LimiterContext) {
    this.#context = context;
    // Alerts need the series from the start.
    for (const kind of guessKinds) context.metrics.wrongGuesses.inc({ kind }, 0);
    for (const labels of refusals) context.metrics.refusedRequests.inc(labels, 0);
  }

  /** Counts a request of a client. @throws AppError `over_request_rate_limit` */
  async enforceRequest(limiter: ClientLimit, client: LimitedClient): Promise<void> {
    const { settings, store, nowMs } = this.#context;
    const { quota, unknownClients } = limits[limiter];
    const { key } = client;
    if (key === undefined) {
      this.#warn(client);
      if (unknownClients === 'requests') this.#enforceShared(limiter, settings.rateLimitUnknownClients);
      return;
    }
    const result = await store.limits.take({ limiter, key, quota: quota(settings) }, nowMs());
    if (!result.allowed) throw this.#refuse(limiter, 'client', result.retryAfterMs);
  }

  /** Counts a failure of a request whose client is unknown; other requests were counted before. */
  enforceFailure(limiter: ClientLimit, { key }: LimitedClient): void {
    if (key === undefined) this.#enforceShared(limiter, 1);
  }

  /**
   * Counts a new account, or a request for one, of an unknown client; `undefined` is no client.
   * Returns the error of a full bucket.
   */
  takeSignUp(client: LimitedClient | undefined): RetryLaterError | undefined {
    const { settings, nowMs } = this.#context;
    if (!isUnknown(client) || settings.rateLimitUnknownSignUps === 0) return undefined;
    this.#warn(client);
    const waitMs = this.#shared.take(unknownSignUp, limits[unknownSignUp].quota(settings), nowMs());
    return waitMs > 0 ? this.#refuse(unknownSignUp, 'instance', waitMs) : undefined;
  }

  /** Takes back the last sign-up, which created no account. */
  giveBackSignUp(client: LimitedClient | undefined): void {
    if (isUnknown(client)) this.#shared.giveBack(unknownSignUp);
  }

  /**
   * Counts an event.
   *
   * @throws RetryLaterError with `error`, by default `over_request_rate_limit`
   */
  async enforce(
    limiter: EventLimit,
    { key, nowMs, error }: { readonly key: string; readonly nowMs: number; readonly error?: () => AppError },
  ): Promise<void> {
    const result = await this.take(limiter, key, nowMs);
    if (result.allowed) return;
    const { by } = limits[limiter];
    if (error === undefined) throw this.#refuse(limiter, by, result.retryAfterMs);
    throw new RetryLaterError(error(), toSeconds(result.retryAfterMs));
  }

  /** Counts an event, and returns whether the limit allows it. */
  async take(limiter: EventLimit, key: string, nowMs: number): Promise<QuotaResult> {
    const { settings, store } = this.#context;
    return store.limits.take({ limiter, key, quota: limits[limiter].quota(settings) }, nowMs);
  }

  /** Counts an event of which each key may have one in `spacingMs`. */
  async takeSpaced(
    limiter: SpacedEvent,
    { key, spacingMs }: { readonly key: string; readonly spacingMs: Millis },
    nowMs: number,
  ): Promise<QuotaResult> {
    const quota = { kind: 'bucket', size: 1, refillEveryMs: spacingMs } as const;
    return this.#context.store.limits.take({ limiter, key, quota }, nowMs);
  }

  /** Takes back the last event, which did not happen after all. */
  async giveBack(limiter: SpacedEvent, key: string): Promise<void> {
    await this.#context.store.limits.giveBack({ limiter, key });
  }

  /**
   * Limits wrong guesses per account and client network, and with a higher limit per account.
   * Networks from which the account was signed in are exempt from the limit of the account, so that
   * an attacker cannot lock the owner out.
   *
   * Runs `attempt`, which returns undefined for a wrong guess. A guess that throws is not counted.
   *
   * @throws AppError of the limit, before the attempt, after too many wrong guesses.
   */
  async guess<T extends object>(
    guess: Guess,
    metadata: Guesser,
    attempt: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const { account, network } = guessKeys(guess.kind, guess.contact, metadata.clientNetwork);
    const key = network ?? account;
    if (this.#turns.isFull(key))
      throw new RetryLaterError(errors.over_request_rate_limit(), tooManyRetrySeconds);
    return this.#turns.run(key, () => this.#guess(guess, metadata, attempt));
  }

  /** Resets the wrong guesses from the network of a request that needed no guess. */
  async recordOwner({ kind, contact }: Guess, { nowMs, clientNetwork }: Guesser): Promise<void> {
    await this.#context.store.limits.countRight(guessKeys(kind, contact, clientNetwork), nowMs);
  }

  async #guess<T extends object>(
    { kind, contact, onAccountLimit }: Guess,
    { nowMs, clientNetwork, requestId }: Guesser,
    attempt: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const { settings, store, logger } = this.#context;
    const keys = guessKeys(kind, contact, clientNetwork);
    const limit = guessLimits(kind, settings);
    const counts = await store.limits.readGuesses(keys);
    const waitMs = guessWaitMs(counts, limit, nowMs);
    if (waitMs > 0) {
      const retryAfterSeconds = toSeconds(waitMs);
      logger.info({ request_id: requestId, kind, retry_after_seconds: retryAfterSeconds }, 'guess rejected');
      throw new RetryLaterError(limits[`wrong_${kind}`].error(), retryAfterSeconds);
    }
    const isSpent = isSpentCode(counts, settings.wrongCodesPerMessage, nowMs);
    // Runs for a used-up code as well: the amount of work must not disclose whether one was sent.
    const found = await attempt();
    const right = isSpent ? undefined : found;
    if (right === undefined) {
      const { accountCount } = await store.limits.countWrong(keys, limit, nowMs);
      if (accountCount + 1 > limit.account.guesses) await onAccountLimit?.();
    } else if (keys.network !== undefined && isWorthStoring(counts, nowMs))
      await store.limits.countRight(keys, nowMs);
    return right;
  }

  #enforceShared(limiter: ClientLimit, factor: number): void {
    const { settings, nowMs } = this.#context;
    if (settings.rateLimitUnknownClients === 0) return;
    const { size, refillEveryMs, kind } = limits[limiter].quota(settings);
    const shared = { kind, size: size * factor, refillEveryMs: refillEveryMs / factor };
    const waitMs = this.#shared.take(limiter, shared, nowMs());
    if (waitMs > 0) throw this.#refuse(limiter, 'instance', waitMs);
  }

  #refuse(limiter: keyof typeof limits, by: string, waitMs: Millis): RetryLaterError {
    this.#context.metrics.refusedRequests.inc({ limiter, key: by });
    return new RetryLaterError(errors.over_request_rate_limit(), toSeconds(waitMs));
  }

  #warn({ peer }: LimitedClient): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#context.logger.warn(
      { proxy: peer, setting: settingsSpec.trustedProxies.env },
      'client addresses unknown, all clients share larger rate limits',
    );
  }
}

function isUnknown(client: LimitedClient | undefined): client is LimitedClient {
  return client !== undefined && client.key === undefined;
}

function toSeconds(ms: Millis): number {
  return Math.ceil(ms / 1000);
}
