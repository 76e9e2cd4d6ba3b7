import { type Queryable, query } from '../db/query.ts';
import type { Metrics } from '../metrics.ts';
import { accountLeakMs, forgetMs, rememberMs, type WrongGuesses } from './guess-limiter.ts';

/** What guesses are counted by. Keys are digests, so that neither contacts nor addresses are stored. */
export interface GuessKeys {
  readonly account: string;
  /** The account and the network of the client; absent when the network is not known. */
  readonly network?: string | undefined;
  /** As `network`, for all kinds of guesses: networks from which the account was signed in. */
  readonly knownNetwork?: string | undefined;
  /** Codes for the account, and the contact that they are sent to; absent for guesses that are not about a code. */
  readonly code?: { readonly key: string; readonly contact: string } | undefined;
}

/** What is known of guesses. */
export interface GuessCounts {
  readonly network: WrongGuesses | undefined;
  readonly account: WrongGuesses | undefined;
  /** Wrong guesses of codes for the contact, those from networks that the account knows included. */
  readonly code: WrongGuesses | undefined;
  /**
   * When the latest code was sent, Unix time in milliseconds; with `SVC_SECURITY_UNIFORM_ANSWERS` when one was asked for, whether or
   * not there is a user to send it to.
   */
  readonly codeSentMs: number | undefined;
  /** When the account was last signed in from the network, Unix time in milliseconds. */
  readonly knownSinceMs: number | undefined;
}

/** The limits that decide how long wrong guesses are remembered. */
export interface GuessLimits {
  readonly perNetwork: number;
  readonly perAccount: number;
}

/** Counts wrong guesses of passwords and codes, for all replicas together. */
export interface GuessStore {
  read(keys: GuessKeys): Promise<GuessCounts>;
  countWrong(keys: GuessKeys, limits: GuessLimits, nowMs: number): Promise<void>;
  /** Forgets the wrong guesses of the network, and remembers it as one of the account's. */
  countRight(keys: GuessKeys, nowMs: number): Promise<void>;
}

// With uniform answers, `rate_limits` has a row for each contact: the spacing of messages to it.
const latestCode = (contact: string): string =>
  `greatest((select max(created_at) at time zone 'utc' from one_time_tokens where relates_to = ${contact}),
    (select max(since) from rate_limits
      where key = ${contact} and limiter in ('contact_confirmation', 'contact_sign_in', 'contact_change')))`;

const read = `
  select limiter, used, since from rate_limits where (limiter, key) in (
    ('wrong_network', $1), ('wrong_account', $2), ('wrong_code', $3), ('known_network', $5))
  union all select 'sent', 0, ${latestCode('$4')} where $4::text is not null`;

// One row a limit, all in one statement. `since` is when the last wrong guess was counted. Of a code only those count that were made
// after it was sent.
// A request that came earlier may be counted later: time does not go back for that.
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

/** {@link GuessStore} over PostgreSQL: one statement an operation. */
export function guessStore(sql: Queryable, metrics: Metrics): GuessStore {
  return {
    async read(keys) {
      const rows = (await query(sql, read, [...wrongKeys(keys), keys.knownNetwork ?? null])).map(
        // Parsed boundary: the columns selected above, with the types of the schema.
        (row) => row as unknown as GuessRow,
      );
      const of = (limiter: GuessRow['limiter']): WrongGuesses | undefined => {
        const row = rows.find((candidate) => candidate.limiter === limiter);
        return row?.since ? { count: row.used, lastMs: row.since.getTime() } : undefined;
      };
      return {
        network: of('wrong_network'),
        account: of('wrong_account'),
        code: of('wrong_code'),
        codeSentMs: of('sent')?.lastMs,
        knownSinceMs: of('known_network')?.lastMs,
      };
    },
    async countWrong(keys, { perNetwork, perAccount }, nowMs) {
      metrics.wrongGuesses.inc({ kind: keys.code === undefined ? 'password' : 'code' });
      const times = [new Date(nowMs), accountLeakMs(perAccount), perNetwork, forgetMs, rememberMs];
      await query(sql, countWrong, [...wrongKeys(keys), ...times]);
    },
    async countRight({ network, knownNetwork }, nowMs) {
      await query(sql, countRight, [network ?? null, knownNetwork ?? null, new Date(nowMs)]);
    },
  };
}

/** The first four parameters. */
function wrongKeys({ network, account, code }: GuessKeys): (string | null)[] {
  return [network ?? null, account, code?.key ?? null, code?.contact ?? null];
}
