import type { Millis } from '@tollgate/kit/time';
import type { Quota } from '../config/quotas.ts';
import { type Queryable, query } from '../db/connection.ts';
import type { Metrics } from '../metrics.ts';
import {
  accountLeakMs,
  type GuessCounts,
  type GuessKeys,
  type GuessLimits,
  type WrongGuesses,
} from './guesses.ts';

/** `retryAfterMs` is an upper bound. */
export type QuotaResult =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly retryAfterMs: Millis };

/** An event that counts against a quota. */
interface QuotaEvent {
  /** A constant of the program. */
  readonly limiter: string;
  /** An address or id; empty for a limit that all share. */
  readonly key: string;
  readonly quota: Quota;
}

/** The counts of all limits, in `rate_limits`, for all replicas. */
export class LimitStore {
  readonly #sql: Queryable;
  readonly #metrics: Metrics;

  constructor(sql: Queryable, metrics: Metrics) {
    this.#sql = sql;
    this.#metrics = metrics;
  }

  /** Counts one event, unless the quota is used up. */
  async take(event: QuotaEvent, nowMs: number): Promise<QuotaResult> {
    if (await this.#count(event, nowMs)) return { allowed: true };
    if (event.limiter === 'email_sent') this.#metrics.refusedEmails.inc();
    const { quota } = event;
    const retryAfterMs =
      quota.kind === 'window' ? windowStart(quota, nowMs) + quota.periodMs - nowMs : quota.refillEveryMs;
    return { allowed: false, retryAfterMs };
  }

  /** Takes back the last event, which did not happen after all. */
  async giveBack({ limiter, key }: Pick<QuotaEvent, 'limiter' | 'key'>): Promise<void> {
    await query(this.#sql, giveBack, [limiter, key]);
  }

  /** Rejects if the database accepts no writes. */
  async probeWrite(nowMs: number): Promise<void> {
    await query(this.#sql, probeWrite, [new Date(nowMs)]);
  }

  async readGuesses(keys: GuessKeys): Promise<GuessCounts> {
    const rows = await query(this.#sql, readGuesses, [...wrongKeys(keys), keys.knownNetwork ?? null]);
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
    { network, account }: GuessLimits,
    nowMs: number,
  ): Promise<{ readonly accountCount: number }> {
    this.#metrics.wrongGuesses.inc({ kind: keys.kind });
    const retention = [network.guesses, network.forgetMs, network.rememberMs];
    const parameters = [...wrongKeys(keys), new Date(nowMs), accountLeakMs(account), ...retention];
    const rows = await query(this.#sql, countWrong, parameters);
    return { accountCount: Number(rows.find(({ limiter }) => limiter === 'wrong_account')?.used) };
  }

  /** Resets the wrong guesses of the network, and adds it to the account's known ones. */
  async countRight({ network, knownNetwork }: GuessKeys, nowMs: number): Promise<void> {
    await query(this.#sql, countRight, [network ?? null, knownNetwork ?? null, new Date(nowMs)]);
  }

  async #count({ limiter, key, quota }: QuotaEvent, nowMs: number): Promise<boolean> {
    const size = quota.kind === 'window' ? quota.events : quota.size;
    // The statements check the limit on conflict only, not for the first event of a key.
    if (size < 1) return false;
    const rows =
      quota.kind === 'window'
        ? await query(this.#sql, window, [limiter, key, new Date(windowStart(quota, nowMs)), size])
        : await query(this.#sql, bucket, [limiter, key, new Date(nowMs), size, quota.refillEveryMs]);
    return rows.length > 0;
  }
}

function windowStart({ periodMs }: Extract<Quota, { kind: 'window' }>, nowMs: number): number {
  return Math.floor(nowMs / periodMs) * periodMs;
}

// Concurrent statements for one key wait for each other, also for a new key: they conflict on the
// primary key. Nothing is returned, and nothing counted, if the limit is reached.
const window = `
  insert into rate_limits as l (limiter, key, used, since) values ($1, $2, 1, $3)
  on conflict (limiter, key) do update
    set used = case when l.since = excluded.since then l.used + 1 else 1 end, since = excluded.since
    where l.since <> excluded.since or l.used + 1 <= $4::float8
  returning used`;

const left = `greatest(0, l.used - extract(epoch from excluded.since - l.since) * 1000 / $5::float8)`;
const bucket = `
  insert into rate_limits as l (limiter, key, used, since) values ($1, $2, 1, $3)
  on conflict (limiter, key) do update
    set used = ${left} + 1, since = excluded.since
    where ${left} + 1 <= $4::float8
  returning used`;

const giveBack = 'update rate_limits set used = greatest(0, used - 1) where limiter = $1 and key = $2';

/** An unlogged row, so that no file is synchronized. */
const probeWrite = `
  insert into rate_limits as l (limiter, key, used, since) values ('ready', '', 0, $1)
  on conflict (limiter, key) do update set since = excluded.since`;

// `rate_limits` has the spacing of codes of factors and, with uniform answers, of each contact.
const latestCode = (contact: string): string =>
  `greatest((select max(created_at) at time zone 'utc' from one_time_tokens where relates_to = ${contact}),
    (select max(since) from rate_limits
      where key = ${contact} and limiter in ('contact_confirmation', 'contact_sign_in', 'contact_change', 'factor_code')))`;

const readGuesses = `
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

/** The first four parameters. */
function wrongKeys({ network, account, code }: GuessKeys): (string | null)[] {
  return [network ?? null, account, code?.key ?? null, code?.contact ?? null];
}
