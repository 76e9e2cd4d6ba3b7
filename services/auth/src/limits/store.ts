import type { Millis } from '@tollgate/kit/time';
import type { Quota } from '../config/quotas.ts';
import type { Queryable } from '../db/connection.ts';
import { float, text, timestamptz } from '../db/sql-types.ts';
import { fragment, parameters, raw, statement } from '../db/statement.ts';
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
    await giveBack.run(this.#sql, { limiter, key });
  }

  /** Rejects if the database accepts no writes. */
  async probeWrite(nowMs: number): Promise<void> {
    await probeWrite.run(this.#sql, { at: new Date(nowMs) });
  }

  async readGuesses(keys: GuessKeys): Promise<GuessCounts> {
    const rows = await readGuesses.run(this.#sql, { ...wrongKeys(keys), knownNetwork: keys.knownNetwork });
    const guesses = new Map<GuessLimiter, WrongGuesses>();
    for (const { limiter, used, since } of rows) {
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
    const rows = await countWrong.run(this.#sql, {
      ...wrongKeys(keys),
      ...network,
      at: new Date(nowMs),
      accountLeakMs: accountLeakMs(account),
    });
    return { accountCount: Number(rows.find(({ limiter }) => limiter === 'wrong_account')?.used) };
  }

  /** Resets the wrong guesses of the network, and adds it to the account's known ones. */
  async countRight({ network, knownNetwork }: GuessKeys, nowMs: number): Promise<void> {
    await countRight.run(this.#sql, { network, knownNetwork, at: new Date(nowMs) });
  }

  async #count({ limiter, key, quota }: QuotaEvent, nowMs: number): Promise<boolean> {
    const size = quota.kind === 'window' ? quota.events : quota.size;
    // The statements check the limit on conflict only, not for the first event of a key.
    if (size < 1) return false;
    const event = { limiter, key, size };
    return quota.kind === 'window'
      ? window.matches(this.#sql, { ...event, at: new Date(windowStart(quota, nowMs)) })
      : bucket.matches(this.#sql, { ...event, at: new Date(nowMs), refillEveryMs: quota.refillEveryMs });
  }
}

function windowStart({ periodMs }: Extract<Quota, { kind: 'window' }>, nowMs: number): number {
  return Math.floor(nowMs / periodMs) * periodMs;
}

const p = {
  ...parameters(text, 'limiter', 'key', 'account'),
  ...parameters(timestamptz, 'at'),
  ...parameters(float, 'size', 'refillEveryMs', 'accountLeakMs', 'guesses', 'forgetMs', 'rememberMs'),
  ...parameters(text.orNull, 'network', 'code', 'contact', 'knownNetwork'),
};

// Concurrent statements for one key wait for each other, also for a new key: they conflict on the
// primary key. Nothing is returned, and nothing counted, if the limit is reached.
const window = statement({})`
  insert into rate_limits as l (limiter, key, used, since) values (${p.limiter}, ${p.key}, 1, ${p.at})
  on conflict (limiter, key) do update
    set used = case when l.since = excluded.since then l.used + 1 else 1 end, since = excluded.since
    where l.since <> excluded.since or l.used + 1 <= ${p.size}::float8
  returning used`;

const left = fragment`greatest(0, l.used - extract(epoch from excluded.since - l.since) * 1000 / ${p.refillEveryMs}::float8)`;
const bucket = statement({})`
  insert into rate_limits as l (limiter, key, used, since) values (${p.limiter}, ${p.key}, 1, ${p.at})
  on conflict (limiter, key) do update
    set used = ${left} + 1, since = excluded.since
    where ${left} + 1 <= ${p.size}::float8
  returning used`;

const giveBack = statement({})`
  update rate_limits set used = greatest(0, used - 1) where limiter = ${p.limiter} and key = ${p.key}`;

/** An unlogged row, so that no file is synchronized. */
const probeWrite = statement({})`
  insert into rate_limits as l (limiter, key, used, since) values ('ready', '', 0, ${p.at})
  on conflict (limiter, key) do update set since = excluded.since`;

// `rate_limits` has the spacing of codes of factors and, with uniform answers, of each contact.
const latestCode = fragment`greatest(
    (select max(created_at) at time zone 'utc' from one_time_tokens where relates_to = ${p.contact}),
    (select max(since) from rate_limits
      where key = ${p.contact} and limiter in ('contact_confirmation', 'contact_sign_in', 'contact_change', 'factor_code')))`;

type GuessLimiter = 'wrong_network' | 'wrong_account' | 'wrong_code' | 'known_network' | 'sent';

const readGuesses = statement({ limiter: text.as<GuessLimiter>(), used: float, since: timestamptz.orNull })`
  select limiter, used, since from rate_limits where (limiter, key) in (
    ('wrong_network', ${p.network}), ('wrong_account', ${p.account}), ('wrong_code', ${p.code}),
    ('known_network', ${p.knownNetwork}))
  union all select 'sent', 0, ${latestCode} where ${p.contact}::text is not null`;

// One row per limit. `since` is the time of the last wrong guess; it never decreases, although an
// earlier request may be counted later. For a code, only guesses after it was sent count.
const elapsedMs = raw('greatest(0, extract(epoch from excluded.since - l.since)) * 1000');
const countWrong = statement({ limiter: text, used: float })`
  insert into rate_limits as l (limiter, key, used, since)
  select limiter, key, 1, ${p.at} from (values
    ('wrong_network', ${p.network}::text), ('wrong_account', ${p.account}), ('wrong_code', ${p.code}))
    as guess (limiter, key)
  where key is not null
  on conflict (limiter, key) do update set since = greatest(l.since, excluded.since), used = 1 + case
    when l.limiter = 'wrong_account' then greatest(0, l.used - ${elapsedMs} / ${p.accountLeakMs}::float8)
    when l.limiter = 'wrong_code' then case
      when ${latestCode} between l.since + interval '1 microsecond' and excluded.since then 0 else l.used end
    when ${elapsedMs} >= case when l.used < ${p.guesses}::float8 then ${p.forgetMs}::float8
      else ${p.rememberMs}::float8 end then 0
    else l.used end
  returning limiter, used`;

const countRight = statement({})`
  with forgotten as (delete from rate_limits where limiter = 'wrong_network' and key = ${p.network})
  insert into rate_limits (limiter, key, used, since) select 'known_network', ${p.knownNetwork}, 1, ${p.at}
  where ${p.knownNetwork}::text is not null
  on conflict (limiter, key) do update set since = excluded.since`;

function wrongKeys({ network, account, code }: GuessKeys) {
  return { network, account, code: code?.key, contact: code?.contact };
}
