import { type Queryable, query } from '../db/query.ts';
import type { Metrics } from '../metrics.ts';
import { accountLeakMs, forgetMs, rememberMs, type WrongGuesses } from './guess-limiter.ts';

/** What guesses are counted by. Keys are digests, so that neither contacts nor addresses are stored. */
export interface GuessKeys {
  readonly account: string;
  /** Account and client network; absent if the network is unknown. */
  readonly network?: string | undefined;
  /** As `network`, for all kinds of guesses: networks from which the account was signed in. */
  readonly knownNetwork?: string | undefined;
  /** For guesses of codes: the key of the account's codes, and the contact that they are sent to. */
  readonly code?: { readonly key: string; readonly contact: string } | undefined;
}

export interface GuessCounts {
  readonly network: WrongGuesses | undefined;
  readonly account: WrongGuesses | undefined;
  /** Wrong guesses of codes for the contact, including those from known networks. */
  readonly code: WrongGuesses | undefined;
  /**
   * When the latest code was sent, Unix time in milliseconds; with `SVC_SECURITY_UNIFORM_ANSWERS` when one was
   * requested, whether or not there is a user to send it to.
   */
  readonly codeSentMs: number | undefined;
  /** When the account was last signed in from the network, Unix time in milliseconds. */
  readonly knownSinceMs: number | undefined;
}

/** Limits of wrong guesses, which determine their retention. */
export interface GuessLimits {
  readonly perNetwork: number;
  readonly perAccount: number;
}

// With uniform answers, `rate_limits` has a row for each contact: the spacing of its messages.
const latestCode = (contact: string): string =>
  `greatest((select max(created_at) at time zone 'utc' from one_time_tokens where relates_to = ${contact}),
    (select max(since) from rate_limits
      where key = ${contact} and limiter in ('contact_confirmation', 'contact_sign_in', 'contact_change')))`;

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
    else l.used end`;

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

  async countWrong(keys: GuessKeys, { perNetwork, perAccount }: GuessLimits, nowMs: number): Promise<void> {
    this.#metrics.wrongGuesses.inc({ kind: keys.code === undefined ? 'password' : 'code' });
    const times = [new Date(nowMs), accountLeakMs(perAccount), perNetwork, forgetMs, rememberMs];
    await query(this.#sql, countWrong, [...wrongKeys(keys), ...times]);
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
