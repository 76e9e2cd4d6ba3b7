import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Millis } from '@tollgate/kit/time';
import type { Quota } from '../config/quotas.ts';
import type { Queryable } from '../db/connection.ts';
import { integer, timestamptz } from '../db/sql-types.ts';
import { type Fragment, fragment, parameters, raw, statement } from '../db/statement.ts';
import { flowLifeMs } from '../flows/pkce.ts';
import { knownNetworkMs } from '../limits/guesses.ts';
import { web3MessageLifeMs } from '../web3/grant.ts';
import type { Context } from './context.ts';

export const expiringKinds = [
  'revoked_refresh_tokens',
  'ended_sessions',
  'old_sessions',
  'idle_sessions',
  'one_time_tokens',
  'flow_states',
  'provider_verifiers',
  'oauth_authorizations',
  'oidc_authorizations',
  'device_codes',
  'pushed_requests',
  'browser_sessions',
  'unused_clients',
  'mfa_challenges',
  'webauthn_challenges',
  'unverified_factors',
  'rate_limits',
  'known_networks',
  'anonymous_users',
  'organization_invitations',
  'api_keys',
  'events',
] as const;

/** A kind of rows that expire. */
export type ExpiringKind = (typeof expiringKinds)[number];

/** The settings that determine retention. */
export interface RetentionPolicy {
  /** 0 for no limit. */
  readonly sessionTimeboxMs: Millis;
  /** 0 for no limit. */
  readonly sessionInactivityTimeoutMs: Millis;
  readonly mailerOtpExpMs: Millis;
  readonly smsOtpExpMs: Millis;
  /** Without the OAuth server, its tables may be missing. */
  readonly oauthServerEnabled: boolean;
  readonly oauthServerAuthorizationTtlMs: Millis;
  readonly rateLimitEmailSent: Quota;
  readonly rateLimitSmsSent: Quota;
  readonly 'web3MaxValidityMs:ethereum': Millis;
  readonly 'web3MaxValidityMs:solana': Millis;
}

const dayMs = 24 * 60 * 60 * 1000;
/** Keeps expired rows for a day, so that operators can investigate recent failures. */
const graceMs = dayMs;
/** By then the client has most likely lost its refresh token. */
const anonymousUsersMs = 30 * dayMs;
/** Reuse of a token this old is still refused (not found), but no longer revokes its family. */
const revokedTokensMs = 30 * dayMs;
/** A client that registers itself and is not used by then registers again. */
const unusedClientsMs = 7 * dayMs;
/** Time to redeliver events that were given up. */
const eventsMs = 30 * dayMs;

/** Rows of a kind that ended before this time are removed. Undefined: they never expire. */
export function removeBefore(kind: ExpiringKind, policy: RetentionPolicy, nowMs: number): Date | undefined {
  const lifetimeMs = getLifetime(kind, policy);
  return lifetimeMs === undefined ? undefined : new Date(nowMs - lifetimeMs - graceMs);
}

function getLifetime(kind: ExpiringKind, policy: RetentionPolicy): Millis | undefined {
  switch (kind) {
    case 'events':
      return eventsMs;
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
    case 'provider_verifiers':
      return policy.mailerOtpExpMs + flowLifeMs;
    case 'oauth_authorizations':
      return policy.oauthServerEnabled ? 0 : undefined;
    case 'oidc_authorizations':
      return policy.oauthServerAuthorizationTtlMs + flowLifeMs;
    case 'unused_clients':
      return policy.oauthServerEnabled ? unusedClientsMs : undefined;
    case 'rate_limits':
      return Math.max(
        ...[getPeriod(policy.rateLimitEmailSent), getPeriod(policy.rateLimitSmsSent)],
        // A code without remaining attempts stays refused until it expires.
        ...[policy.mailerOtpExpMs, policy.smsOtpExpMs, dayMs],
        // A signed message stays refused until it expires.
        web3MessageLifeMs(policy['web3MaxValidityMs:ethereum']),
        web3MessageLifeMs(policy['web3MaxValidityMs:solana']),
      );
    case 'known_networks':
      return knownNetworkMs;
    default:
      return 0;
  }
}

/** The time after which a counted event no longer matters: a bucket is full again by then. */
function getPeriod(quota: Quota): Millis {
  return quota.kind === 'window' ? quota.periodMs : quota.size * quota.refillEveryMs;
}

/** Expired rows have no events. Each statement reads this before it deletes. */
const quiet = raw(`quiet as materialized (select set_config('tollgate.events', 'off', true))`);
const p = { ...parameters(timestamptz, 'before'), ...parameters(integer, 'limit') };
const removedRow = { removed: integer };

type Condition = Fragment<{ readonly before: Date }>;

/**
 * Deletes rows whose `time` is before a time. `skip locked`: replicas clean up concurrently and do
 * not wait for requests that use the rows. The order is that of an index: in any other one, a batch
 * would read the whole table while it holds locks.
 */
function deleteOld(
  name: string,
  time: string,
  { before = p.before, and = raw('true') }: { readonly before?: Condition; readonly and?: Condition } = {},
) {
  const [table, since] = [raw(name), raw(time)];
  return statement(removedRow)`with ${quiet}, expired as (
      select ${table}.ctid from ${table} cross join quiet where ${since} < ${before} and ${and} order by ${since} limit ${p.limit}
      for update of ${table} skip locked
    ), removed as (delete from ${table} where ctid = any(array(select ctid from expired)) returning 1)
    select count(*)::int as removed from removed`;
}

// Deletes a session with the last of its tokens: nothing can refresh it any more, unless it uses
// counter-based refresh tokens, which are not stored.
const deleteRevokedTokens = statement(removedRow)`
  with ${quiet}, expired as (
    select id from refresh_tokens cross join quiet where revoked and updated_at < ${p.before} order by updated_at limit ${p.limit}
    for update of refresh_tokens skip locked
  ), removed as (
    delete from refresh_tokens where id in (select id from expired) returning id, session_id
  ), left_over as (
    delete from sessions s
    where s.id in (select session_id from removed) and s.refresh_token_hmac_key is null and not exists (
      select 1 from refresh_tokens t where t.session_id = s.id and t.id not in (select id from removed))
  )
  select count(*)::int as removed from removed`;

// A refresh counts as activity, too.
const isInactiveAnonymous = fragment`is_anonymous and created_at < ${p.before}
  and coalesce(last_sign_in_at, created_at) < ${p.before} and not exists (
    select 1 from sessions s
    where s.user_id = users.id and coalesce(s.refreshed_at at time zone 'utc', s.created_at) >= ${p.before})`;

// Anyone can register clients. Those of administrators stay, and so does a client with a metadata
// document that an administrator disabled or deleted: its next request would create it again.
const deleteUnusedClients = statement(removedRow)`
  with ${quiet}, unused as (
    select c.id from oauth_clients c cross join quiet
    where c.registration_type = 'dynamic' and c.created_at < ${p.before}
      and not exists (select 1 from oauth_consents o where o.client_id = c.id and o.revoked_at is null)
      and not exists (select 1 from oauth_authorizations a where a.client_id = c.id)
      and not exists (select 1 from sessions s where s.oauth_client_id = c.id)
      and not exists (
        select 1 from oauth_client_settings s
        where s.client_id = c.id and s.document_url is not null and (s.disabled or c.deleted_at is not null))
    limit ${p.limit} for update of c skip locked
  ), removed as (
    delete from oauth_clients where id in (select id from unused) returning id
  ), settings as (delete from oauth_client_settings where client_id in (select id from removed))
  select count(*)::int as removed from removed`;

const deleteExpired = {
  revoked_refresh_tokens: deleteRevokedTokens,
  ended_sessions: deleteOld('sessions', 'not_after'),
  old_sessions: deleteOld('sessions', 'created_at'),
  idle_sessions: deleteOld('sessions', 'created_at', {
    and: fragment`coalesce(refreshed_at at time zone 'utc', created_at) < ${p.before}
      and not exists (select 1 from browser_sessions b where b.session_id = sessions.id and b.used_at >= ${p.before})`,
  }),
  one_time_tokens: deleteOld('one_time_tokens', 'created_at', {
    before: fragment`${p.before}::timestamptz at time zone 'utc'`,
  }),
  flow_states: deleteOld('flow_state', 'created_at'),
  provider_verifiers: deleteOld('oauth_client_states', 'created_at'),
  oauth_authorizations: deleteOld('oauth_authorizations', 'expires_at'),
  oidc_authorizations: deleteOld('oidc_authorizations', 'stored_at'),
  device_codes: deleteOld('oauth_device_codes', 'expires_at'),
  pushed_requests: deleteOld('oauth_pushed_requests', 'expires_at'),
  // Others end with the session of their user.
  browser_sessions: deleteOld('browser_sessions', 'created_at', { and: raw('digest is null') }),
  unused_clients: deleteUnusedClients,
  mfa_challenges: deleteOld('mfa_challenges', 'created_at'),
  webauthn_challenges: deleteOld('webauthn_challenges', 'expires_at'),
  unverified_factors: deleteOld('mfa_factors', 'created_at', { and: raw(`status = 'unverified'`) }),
  rate_limits: deleteOld('rate_limits', 'since', { and: raw(`limiter <> 'known_network'`) }),
  known_networks: deleteOld('rate_limits', 'since', { and: raw(`limiter = 'known_network'`) }),
  // Unlike other rows, users who are removed have events.
  anonymous_users: statement(removedRow)`
    with expired as (
      select id from users where ${isInactiveAnonymous} order by created_at limit ${p.limit} for update skip locked
    ), removed as (delete from users where id in (select id from expired) returning 1)
    select count(*)::int as removed from removed`,
  organization_invitations: deleteOld('organization_invitations', 'expires_at'),
  api_keys: deleteOld('api_keys', 'expires_at'),
  events: deleteOld('tollgate_events', 'coalesce(retry_until, created_at)'),
} satisfies Readonly<Record<ExpiringKind, unknown>>;

export class CleanupStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** Removes up to `limit` rows of a kind and returns their number. Locked rows are skipped. */
  async removeExpired(kind: ExpiringKind, before: Date, limit: number): Promise<number> {
    return (await deleteExpired[kind].first(this.#sql, { before, limit }))?.removed ?? 0;
  }
}

/** Rows that one statement removes, and locks. */
const batchSize = 1000;
/** Applies to each kind and run. The next run removes the rest. */
const maxBatches = 50;
const intervalMs = 10 * 60_000;

interface CleanupContext extends Pick<Context, 'metrics' | 'logger' | 'nowMs'> {
  readonly store: { readonly cleanup: Pick<CleanupStore, 'removeExpired'> };
  readonly settings: RetentionPolicy;
}

/** Removes expired rows at the start and every ten minutes, one run at a time. */
export class CleanupTimer implements LifecycleComponent {
  readonly name = 'cleanup';
  readonly #context: CleanupContext;
  readonly #intervalMs: number;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(context: CleanupContext, options: { readonly intervalMs?: number } = {}) {
    this.#context = context;
    this.#intervalMs = options.intervalMs ?? intervalMs;
    for (const kind of expiringKinds) context.metrics.removedRows.inc({ kind }, 0);
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    await this.#running;
  }

  async #run(): Promise<void> {
    const { logger } = this.#context;
    try {
      const removed = await this.#removeExpired();
      if (Object.keys(removed).length > 0) logger.info({ removed }, 'removed expired rows');
    } catch (error) {
      logger.warn({ err: error }, 'failed to remove expired rows');
    }
    if (!this.#stopping.signal.aborted)
      this.#timer = setTimeout(() => this.start(), this.#intervalMs).unref();
  }

  /** Returns the number of removed rows by kind. */
  async #removeExpired(): Promise<Readonly<Record<string, number>>> {
    const { store, settings, metrics, nowMs } = this.#context;
    const { signal } = this.#stopping;
    const startedMs = nowMs();
    const removed: Record<string, number> = {};
    for (const kind of expiringKinds) {
      const before = removeBefore(kind, settings, startedMs);
      if (before === undefined) continue;
      for (let batch = 0; batch < maxBatches && !signal.aborted; batch++) {
        const rows = await store.cleanup.removeExpired(kind, before, batchSize);
        if (rows > 0) removed[kind] = (removed[kind] ?? 0) + rows;
        if (rows < batchSize) break;
      }
    }
    for (const [kind, rows] of Object.entries(removed)) metrics.removedRows.inc({ kind }, rows);
    return removed;
  }
}
