import { createHash } from 'node:crypto';
import type { Millis } from '@tollgate/kit/time';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { type Queryable, query } from '../db/connection.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Metrics } from '../metrics.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Below the limit, the count of a network is reset after this time without a wrong guess. */
const forgetMs = 10 * minuteMs;
/** From the limit on, it is kept for longer, so that a pause does not reset the delay. */
export const rememberMs = dayMs;
/** Delay of the next guess at the limit. It doubles with each further wrong guess. */
const firstDelayMs = minuteMs;
const maxDelayMs = hourMs;
/** How long a network stays known after a sign-in from it. */
export const knownNetworkMs = 90 * dayMs;

/** Wrong guesses so far, and when the last of them was made. */
interface WrongGuesses {
  readonly count: number;
  readonly lastMs: number;
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
export function networkWaitMs(wrong: WrongGuesses | undefined, limit: number, nowMs: number): Millis {
  if (wrong === undefined || wrong.count < limit) return 0;
  const elapsedMs = nowMs - wrong.lastMs;
  if (elapsedMs >= rememberMs) return 0;
  return Math.max(0, Math.min(maxDelayMs, firstDelayMs * 2 ** (wrong.count - limit)) - elapsedMs);
}

/** How often an account is guessed wrongly from networks that are unknown to it. */
interface AccountLimit {
  readonly guesses: number;
  /** Time in which a full count drains. */
  readonly periodMs: Millis;
}

/** Time in which the count of an account drains by one. */
function accountLeakMs({ guesses, periodMs }: AccountLimit): Millis {
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

/** Limits by kind of guess. A new kind is a row, and its settings. */
const limits = {
  password: (settings) => ({
    perNetwork: settings.wrongPasswordsPerNetwork,
    perAccount: { guesses: settings.wrongPasswordsPerAccount, periodMs: hourMs },
  }),
  code: (settings) => ({
    perNetwork: settings.wrongCodesPerNetwork,
    perAccount: { guesses: settings.wrongCodesPerAccount, periodMs: hourMs },
  }),
  factor: (settings) => ({
    perNetwork: settings.wrongFactorsPerNetwork,
    perAccount: { guesses: settings.wrongFactorsPerDay, periodMs: dayMs },
  }),
} as const satisfies Readonly<Record<string, (settings: Settings) => GuessLimits>>;

type GuessKind = keyof typeof limits;

interface Guess {
  readonly kind: GuessKind;
  /**
   * Normalized email or phone of the request. It need not belong to a user: limits must not enable
   * user enumeration.
   */
  readonly contact: string;
  /** Called for the wrong guess with which the account reaches its limit. */
  readonly onAccountLimit?: () => Promise<void>;
}

type LimiterContext = Pick<Context, 'store' | 'settings' | 'logger'>;

/** Waiting guesses per account and network. */
const maxWaiting = 50;
const tooManyRetrySeconds = 2;
/**
 * Minimum age of a known network before it is stored again: one write a day instead of one per
 * sign-in.
 */
const storeAgainMs = 24 * 3_600_000;

/**
 * Limits wrong passwords and codes per account and client network, and with a higher limit per
 * account. Networks from which the account was signed in are exempt from the limit of the account,
 * so that an attacker cannot lock the owner out.
 *
 * Guesses for one account from one network run one after the other: concurrent ones must not exceed
 * the limit.
 */
export class GuessLimiter {
  readonly #context: LimiterContext;
  /** Running and waiting guesses, and the end of the last one, by kind, account and network. */
  readonly #turns = new Map<string, { guesses: number; end: Promise<void> }>();

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
      const guessLimits = limits[guess.kind](this.#context.settings);
      const counts = await guesses.read(keys);
      const waitMs = getWaitMs(counts, guessLimits, metadata.nowMs);
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
      if (right === undefined) {
        const { accountCount } = await guesses.countWrong(keys, guessLimits, metadata.nowMs);
        if (accountCount + 1 > guessLimits.perAccount.guesses) await guess.onAccountLimit?.();
      } else if (keys.network !== undefined && isWorthStoring(counts, metadata.nowMs))
        await guesses.countRight(keys, metadata.nowMs);
      return right;
    });
  }

  async #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#turns.get(key) ?? { guesses: 0, end: Promise.resolve() };
    // One of them is running.
    if (turn.guesses > maxWaiting)
      throw new RetryLaterError(errors.over_request_rate_limit(), tooManyRetrySeconds);
    this.#turns.set(key, turn);
    turn.guesses++;
    const previousEnd = turn.end;
    const { promise, resolve: end } = Promise.withResolvers<void>();
    turn.end = promise;
    try {
      await previousEnd;
      return await work();
    } finally {
      end();
      if (--turn.guesses === 0) this.#turns.delete(key);
    }
  }
}

function toKeys({ kind, contact }: Guess, network: string | undefined): GuessKeys {
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

/**
 * What guesses are counted by. Keys are digests, so that neither contacts nor addresses are stored.
 */
interface GuessKeys {
  readonly kind: GuessKind;
  readonly account: string;
  /** Account and client network; absent if the network is unknown. */
  readonly network?: string | undefined;
  /** As `network`, for all kinds of guesses: networks from which the account was signed in. */
  readonly knownNetwork?: string | undefined;
  /**
   * For guesses of codes: the key of the account's codes, and the contact that they are sent to.
   */
  readonly code?: { readonly key: string; readonly contact: string } | undefined;
}

interface GuessCounts {
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

/** Limits of wrong guesses, which determine their retention. */
interface GuessLimits {
  readonly perNetwork: number;
  readonly perAccount: AccountLimit;
}

// `rate_limits` has the spacing of codes of factors and, with uniform answers, of each contact.
const latestCode = (contact: string): string =>
  `greatest((select max(created_at) at time zone 'utc' from one_time_tokens where relates_to = ${contact}),
    (select max(since) from rate_limits
      where key = ${contact} and limiter in ('contact_confirmation', 'contact_sign_in', 'contact_change', 'factor_code')))`;

const read = `
  select limiter, used, since from rate_limits where (limiter, key) in (
    ('wrong_network', $1), ('wrong_account', $2), ('wrong_code', $3), ('known_network', $5))
  union all select 'sent', 0, ${latestCode('$4')} where $4::text is not null`;

// One row per limit. `since` is the time of the last wrong guess; it never decreases, although an
// earlier request may be counted later. For a code, only guesses after it was sent count.
const elapsedMs = 'greatest(0, extract(epoch from excluded.since - l.since)) * 1000';
const countWrong = `
  insert into rate_limits as l (limiter, key, used, since)
  select limiter, key, 1, $5 from (values
    ('wrong_network', $1::text), ('wrong_account', $2), ('wrong_code', $3)) as guess (limiter, key)
  where key is not null
  on conflict (limiter, key) do update set since = greatest(l.since, excluded.since), used = 1 + case
    when l.limiter = 'wrong_account' then greatest(0, l.used - ${elapsedMs} / $6::float8)
    when l.limiter = 'wrong_code' then case
      when ${latestCode('$4')} between l.since + interval '1 microsecond' and excluded.since then 0 else l.used end
    when ${elapsedMs} >= case when l.used < $7::float8 then $8::float8 else $9::float8 end then 0
    else l.used end
  returning limiter, used`;

const countRight = `
  with forgotten as (delete from rate_limits where limiter = 'wrong_network' and key = $1)
  insert into rate_limits (limiter, key, used, since) select 'known_network', $2, 1, $3 where $2::text is not null
  on conflict (limiter, key) do update set since = excluded.since`;

interface GuessRow {
  readonly limiter: 'wrong_network' | 'wrong_account' | 'wrong_code' | 'known_network' | 'sent';
  readonly used: number;
  readonly since: Date | null;
}

/** Counts wrong guesses of passwords and codes, for all replicas. */
export class GuessStore {
  readonly #sql: Queryable;
  readonly #metrics: Metrics;

  constructor(sql: Queryable, metrics: Metrics) {
    this.#sql = sql;
    this.#metrics = metrics;
  }

  async read(keys: GuessKeys): Promise<GuessCounts> {
    const rows = await query(this.#sql, read, [...wrongKeys(keys), keys.knownNetwork ?? null]);
    const guesses = new Map<GuessRow['limiter'], WrongGuesses>();
    for (const row of rows) {
      // Parsed boundary: the columns selected above, with the types of the schema.
      const { limiter, used, since } = row as unknown as GuessRow;
      if (since !== null) guesses.set(limiter, { count: used, lastMs: since.getTime() });
    }
    return {
      network: guesses.get('wrong_network'),
      account: guesses.get('wrong_account'),
      code: guesses.get('wrong_code'),
      codeSentMs: guesses.get('sent')?.lastMs,
      knownSinceMs: guesses.get('known_network')?.lastMs,
    };
  }

  /** Returns the count of the account with this guess. */
  async countWrong(
    keys: GuessKeys,
    { perNetwork, perAccount }: GuessLimits,
    nowMs: number,
  ): Promise<{ readonly accountCount: number }> {
    this.#metrics.wrongGuesses.inc({ kind: keys.kind });
    const times = [new Date(nowMs), accountLeakMs(perAccount), perNetwork, forgetMs, rememberMs];
    const rows = await query(this.#sql, countWrong, [...wrongKeys(keys), ...times]);
    return { accountCount: Number(rows.find(({ limiter }) => limiter === 'wrong_account')?.used) };
  }

  /** Resets the wrong guesses of the network, and adds it to the account's known ones. */
  async countRight({ network, knownNetwork }: GuessKeys, nowMs: number): Promise<void> {
    await query(this.#sql, countRight, [network ?? null, knownNetwork ?? null, new Date(nowMs)]);
  }
}

/** The first four parameters. */
function wrongKeys({ network, account, code }: GuessKeys): (string | null)[] {
  return [network ?? null, account, code?.key ?? null, code?.contact ?? null];
}
