import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import type { Millis } from '@tollgate/kit/time';
import { Counter, type Registry } from 'prom-client';
import type { Context } from '../context.ts';
import type { Quota } from '../messages/quotas.ts';
import { knownNetworkMs, rememberMs } from '../sign-in/guess-limiter.ts';
import { flowLifeMs } from '../sign-in/pkce.ts';
import { type Queryable, query } from './query.ts';

/** Kinds of rows that nobody needs any more after a while. */
export const expiringKinds = [
  'revoked_refresh_tokens',
  'ended_sessions',
  'old_sessions',
  'idle_sessions',
  'one_time_tokens',
  'flow_states',
  'mfa_challenges',
  'unverified_factors',
  'rate_limits',
  'known_networks',
  'anonymous_users',
] as const;

/** A kind of rows that expire. */
export type ExpiringKind = (typeof expiringKinds)[number];

/** The settings that say how long things are good for. */
export interface RetentionPolicy {
  /** 0 for no end. */
  readonly sessionTimeboxMs: Millis;
  /** 0 for any. */
  readonly sessionInactivityTimeoutMs: Millis;
  readonly mailerOtpExpMs: Millis;
  readonly smsOtpExpMs: Millis;
  readonly rateLimitEmailSent: Quota;
  readonly rateLimitSmsSent: Quota;
}

const dayMs = 24 * 60 * 60 * 1000;
/** Whoever looks at what went wrong yesterday finds it. */
const graceMs = dayMs;
/** Whoever has not come back by then has lost the token that would have let them in, most likely. */
const anonymousUsersMs = 30 * dayMs;
/** A stolen token that is used so much later is not found, which is a refusal too; what is lost is that its family is revoked. */
const revokedTokensMs = 30 * dayMs;

/** The moment before which rows of a kind are removed: made, or over, then. Undefined where they never expire. */
export function removeBefore(kind: ExpiringKind, policy: RetentionPolicy, nowMs: number): Date | undefined {
  const lifeMs = lifeOf(kind, policy);
  return lifeMs === undefined ? undefined : new Date(nowMs - lifeMs - graceMs);
}

function lifeOf(kind: ExpiringKind, policy: RetentionPolicy): Millis | undefined {
  switch (kind) {
    case 'revoked_refresh_tokens':
      return revokedTokensMs;
    case 'anonymous_users':
      return anonymousUsersMs;
    case 'old_sessions':
      return policy.sessionTimeboxMs || undefined;
    case 'idle_sessions':
      return policy.sessionInactivityTimeoutMs || undefined;
    case 'one_time_tokens':
      return Math.max(policy.mailerOtpExpMs, policy.smsOtpExpMs);
    case 'flow_states':
      return policy.mailerOtpExpMs + flowLifeMs;
    case 'rate_limits':
      return Math.max(
        ...[periodOf(policy.rateLimitEmailSent), periodOf(policy.rateLimitSmsSent)],
        // A code without guesses left stays refused until it has expired.
        ...[policy.mailerOtpExpMs, policy.smsOtpExpMs, rememberMs],
      );
    case 'known_networks':
      return knownNetworkMs;
    default:
      return 0;
  }
}

/** How long what has happened counts: a bucket is full again after so much time. */
function periodOf(quota: Quota): Millis {
  return quota.kind === 'window' ? quota.periodMs : quota.size * quota.refillEveryMs;
}

/** Takes away what has expired. */
export interface CleanupStore {
  /** Removes up to `atMost` rows of a kind and answers how many; rows that others are busy with are left for the next time. */
  removeExpired(kind: ExpiringKind, before: Date, atMost: number): Promise<number>;
}

/** Several replicas clean up at the same time without waiting for each other, or for those whose rows are in use. */
function remove(table: string, which: string): string {
  return `with expired as (select ctid from ${table} where ${which} limit $2 for update skip locked),
    removed as (delete from ${table} where ctid = any(array(select ctid from expired)) returning 1)
    select count(*)::int as removed from removed`;
}

// A session goes with the last of its tokens: its family was revoked, and nobody can refresh it, unless by tokens that are not kept.
const revokedTokens = `
  with expired as (
    select id from refresh_tokens where revoked and updated_at < $1 limit $2 for update skip locked
  ), removed as (
    delete from refresh_tokens where id in (select id from expired) returning id, session_id
  ), left_over as (
    delete from sessions s
    where s.id in (select session_id from removed) and s.refresh_token_hmac_key is null and not exists (
      select 1 from refresh_tokens t where t.session_id = s.id and t.id not in (select id from removed))
  )
  select count(*)::int as removed from removed`;

// Not of those who are still there: a refresh is a sign of life as well.
const isGone = `is_anonymous and created_at < $1 and coalesce(last_sign_in_at, created_at) < $1 and not exists (
  select 1 from sessions s where s.user_id = users.id and coalesce(s.refreshed_at at time zone 'utc', s.created_at) >= $1)`;

const texts: Readonly<Record<ExpiringKind, string>> = {
  revoked_refresh_tokens: revokedTokens,
  ended_sessions: remove('sessions', 'not_after < $1'),
  old_sessions: remove('sessions', 'created_at < $1'),
  idle_sessions: remove('sessions', `coalesce(refreshed_at at time zone 'utc', created_at) < $1`),
  one_time_tokens: remove('one_time_tokens', `created_at < $1::timestamptz at time zone 'utc'`),
  flow_states: remove('flow_state', 'created_at < $1'),
  mfa_challenges: remove('mfa_challenges', 'created_at < $1'),
  unverified_factors: remove('mfa_factors', `status = 'unverified' and created_at < $1`),
  rate_limits: remove('rate_limits', `limiter <> 'known_network' and since < $1`),
  known_networks: remove('rate_limits', `limiter = 'known_network' and since < $1`),
  anonymous_users: remove('users', isGone),
};

/** {@link CleanupStore} over PostgreSQL. */
export function cleanup(sql: Queryable): CleanupStore {
  return {
    async removeExpired(kind, before, atMost) {
      const [row] = await query(sql, texts[kind], [before, atMost]);
      return typeof row?.removed === 'number' ? row.removed : 0;
    },
  };
}

/** Removes what has expired and answers how many rows of each kind that were. Ends early when `signal` aborts. */
export type RemoveExpired = (nowMs: number, signal: AbortSignal) => Promise<Readonly<Record<string, number>>>;

/** Rows that are removed, and locked, by one statement. */
const batchSize = 1000;
/** A run ends after so many of a kind: what is left waits for the next one. */
const maxBatches = 50;

/** Creates {@link RemoveExpired}. */
export function createRemoveExpired({ store, settings }: Pick<Context, 'store' | 'settings'>): RemoveExpired {
  return async (nowMs, signal) => {
    const removed: Record<string, number> = {};
    for (const kind of expiringKinds) {
      const before = removeBefore(kind, settings, nowMs);
      if (before === undefined) continue;
      for (let batch = 0; batch < maxBatches && !signal.aborted; batch++) {
        const rows = await store.cleanup.removeExpired(kind, before, batchSize);
        if (rows > 0) removed[kind] = (removed[kind] ?? 0) + rows;
        if (rows < batchSize) break;
      }
    }
    return removed;
  };
}

/** Often enough that a run has little to do. */
const defaultEveryMs = 10 * 60_000;

/** Removes what has expired at the start and again and again, one run at a time. A run that fails is logged; the next may succeed. */
export function createCleanupTimer(deps: {
  readonly removeExpired: RemoveExpired;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly everyMs?: number;
}): LifecycleComponent {
  const { removeExpired, logger, nowMs, everyMs = defaultEveryMs } = deps;
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;

  async function run(): Promise<void> {
    try {
      const removed = await removeExpired(nowMs(), stopping.signal);
      if (Object.keys(removed).length > 0) logger.info({ removed }, 'expired rows removed');
    } catch (error) {
      logger.warn({ err: error }, 'expired rows not removed');
    }
    if (!stopping.signal.aborted) timer = setTimeout(start, everyMs).unref();
  }

  function start(): void {
    running = run();
  }

  return {
    name: 'cleanup',
    start,
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await running;
    },
  };
}

/** Counts the rows that were removed because they had expired, by kind. Without a registry, nothing. */
export function countRemovedRows(
  removeExpired: RemoveExpired,
  registry: Registry | undefined,
): RemoveExpired {
  if (registry === undefined) return removeExpired;
  const rows = new Counter({
    name: 'gotrue_cleanup_affected_rows_total',
    help: 'Expired rows removed, by kind.',
    labelNames: ['kind'],
    registers: [registry],
  });
  return async (nowMs, signal) => {
    const removed = await removeExpired(nowMs, signal);
    for (const [kind, count] of Object.entries(removed)) rows.inc({ kind }, count);
    return removed;
  };
}
