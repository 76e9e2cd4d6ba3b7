import type { ExpiringKind } from '../../../domain/retention.ts';
import type { CleanupStore } from '../../../ports/cleanup-store.ts';
import { type Queryable, query } from '../query.ts';

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
