import { createHash } from 'node:crypto';
import { createWorkQueue, QueueFull, type WorkQueue } from '../../background/work-queue.ts';
import { accountWaitMs, isFreshCode, knownNetworkMs, networkWaitMs } from '../../domain/guessing.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { errors, RetryLaterError } from '../../errors.ts';
import type { GuessCounts, GuessKeys, GuessLimits } from '../../ports/guess-store.ts';
import type { DepsWith } from '../../services.ts';

/** What is guessed. */
export interface Guess {
  readonly kind: 'password' | 'code';
  /** Email or phone, as it is kept, whether or not a user has it: limits must not tell who exists. */
  readonly contact: string;
}

/** What the limiter takes. */
export type GuessLimiterDeps = DepsWith<
  'store' | 'logger',
  | 'wrongPasswordsPerNetwork'
  | 'wrongPasswordsPerAccount'
  | 'wrongCodesPerNetwork'
  | 'wrongCodesPerAccount'
  | 'wrongCodesPerMessage'
>;

/** Guesses for one account from one network that wait for the one before them. */
const maxWaiting = 50;
const queueFullRetrySeconds = 2;
/** A known network is noted again after so much time: one write a day, not one a sign-in. */
const noteAgainMs = 24 * 3_600_000;

/**
 * Limits how often passwords and codes are guessed: per account and network of the client, and with a higher bound per account over all
 * networks from which it has not been signed in. A network that guesses does not keep the owner out who comes from another one, and
 * many networks do not keep the owner out who comes from a network that the account knows.
 *
 * Guesses for one account from one network are made one after the other, so that many at once are not more than the limit allows.
 */
export class GuessLimiter {
  readonly #deps: GuessLimiterDeps;
  /** By kind, account and network; those without a guess under way are removed. */
  readonly #turns = new Map<string, { readonly queue: WorkQueue; guesses: number }>();

  constructor(deps: GuessLimiterDeps) {
    this.#deps = deps;
  }

  /**
   * Makes a guess: `attempt` answers undefined for a wrong one. What it throws is neither right nor wrong.
   *
   * @throws AppError `over_request_rate_limit` without an attempt when there were too many wrong ones.
   */
  async guess<T extends object>(
    guess: Guess,
    facts: RequestFacts,
    attempt: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const keys = keysOf(guess, facts.clientNetwork);
    return this.#inTurn(keys.network ?? keys.account, async () => {
      const { guesses } = this.#deps.store;
      const limits = this.#limits(guess.kind);
      const counts = await guesses.read(keys);
      const waitMs = waitMsOf(counts, limits, facts.nowMs);
      if (waitMs > 0) {
        const retryAfterSeconds = Math.ceil(waitMs / 1000);
        this.#deps.logger.info(
          { request_id: facts.requestId, kind: guess.kind, retry_after_seconds: retryAfterSeconds },
          'guess refused',
        );
        throw new RetryLaterError(errors.over_request_rate_limit(), retryAfterSeconds);
      }
      const isSpent = isSpentCode(counts, this.#deps.settings.wrongCodesPerMessage, facts.nowMs);
      // Also for a code that is used up: the work must not tell whether there was one.
      const found = await attempt();
      const right = isSpent ? undefined : found;
      if (right === undefined) await guesses.countWrong(keys, limits, facts.nowMs);
      else if (keys.network !== undefined && isWorthNoting(counts, facts.nowMs))
        await guesses.countRight(keys, facts.nowMs);
      return right;
    });
  }

  #limits(kind: Guess['kind']): GuessLimits {
    const { settings } = this.#deps;
    return kind === 'password'
      ? { perNetwork: settings.wrongPasswordsPerNetwork, perAccount: settings.wrongPasswordsPerAccount }
      : { perNetwork: settings.wrongCodesPerNetwork, perAccount: settings.wrongCodesPerAccount };
  }

  async #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#turns.get(key) ?? {
      queue: createWorkQueue({ concurrency: 1, maxWaiting }),
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

function keysOf({ kind, contact }: Guess, network: string | undefined): GuessKeys {
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

/** How long the next guess has to wait. The first guess of a code that was just sent need not, whatever was guessed before. */
function waitMsOf(counts: GuessCounts, { perNetwork, perAccount }: GuessLimits, nowMs: number): number {
  const { network, account, codeSentMs } = counts;
  const ofNetwork = isFreshCode(codeSentMs, network, nowMs) ? 0 : networkWaitMs(network, perNetwork, nowMs);
  const isExempt = isKnownNetwork(counts, nowMs) || isFreshCode(codeSentMs, account, nowMs);
  return Math.max(ofNetwork, isExempt ? 0 : accountWaitMs(account, perAccount, nowMs));
}

/** Has the latest code been guessed too often? A network that the account knows may go on. */
function isSpentCode(counts: GuessCounts, limit: number, nowMs: number): boolean {
  const { code, codeSentMs } = counts;
  if (code === undefined || codeSentMs === undefined || isFreshCode(codeSentMs, code, nowMs)) return false;
  return code.count >= limit && !isKnownNetwork(counts, nowMs);
}

function isKnownNetwork({ knownSinceMs }: GuessCounts, nowMs: number): boolean {
  return knownSinceMs !== undefined && knownSinceMs + knownNetworkMs > nowMs;
}

function isWorthNoting({ network, knownSinceMs }: GuessCounts, nowMs: number): boolean {
  return network !== undefined || knownSinceMs === undefined || knownSinceMs + noteAgainMs <= nowMs;
}
