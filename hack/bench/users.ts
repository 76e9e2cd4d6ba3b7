import type { Sql } from 'postgres';

/** Rows that one statement writes: bounds the memory of PostgreSQL for checks of foreign keys. */
const batchRows = 50_000;

/** An id in SQL: `prefix` tells kinds of rows apart, and `n` rows. */
export const id = (prefix: number, n = 'n') => `(lpad(to_hex(${prefix}), 8, '0') || '-0000-4000-8000-' ||
  lpad(to_hex(${n}), 12, '0'))::uuid`;
const noInstance = `'00000000-0000-0000-0000-000000000000'::uuid`;
const columnsOfTokens = [
  ...['confirmation_token', 'recovery_token', 'email_change_token_new', 'email_change_token_current'],
  ...['email_change', 'phone_change', 'phone_change_token', 'reauthentication_token'],
];

/** Not in the order of creation, as in reality. */
const email = `'user' || reverse(n::text) || '@example.com'`;

/**
 * Users created a second apart, the newest now; `n` counts from 1, and `age` is 0 for the newest.
 */
const rows = `from (select n, make_interval(secs => $3 - n) as age from generate_series($1::int, $2::int) n
  where $3::int is not null) g`;

/** Statements that fill a table from row `$1` to `$2` of `$3`. */
const fills: readonly string[] = [
  `insert into auth.users (id, instance_id, aud, role, email, phone, encrypted_password, email_confirmed_at,
      raw_app_meta_data, raw_user_meta_data, is_anonymous, created_at, updated_at, last_sign_in_at, banned_until,
      is_sso_user, is_super_admin, email_change_confirm_status, ${columnsOfTokens.join(', ')})
    select ${id(1)}, ${noInstance}, 'authenticated', case when n % 500 = 0 then 'support' else 'authenticated' end,
      ${email}, case when n % 3 = 0 then '49' || 1500000000 + n end, '',
      case when n % 20 > 0 then now() - age end,
      jsonb_build_object('provider', 'email', 'providers', '["email"]'::jsonb)
        || case when n % 100 = 1 then '{"plan":"gold"}' else '{}'::jsonb end,
      jsonb_build_object('full_name', 'Name' || reverse(n::text) || ' of the benchmark'), n % 50 = 7, now() - age, now() - age,
      case when n % 4 > 0 then now() - age / 2 end, case when n % 200 = 3 then now() + interval '1 year' end,
      false, false, 0, ${columnsOfTokens.map(() => "''").join(', ')} ${rows}`,
  `insert into auth.identities (id, user_id, provider, provider_id, identity_data, last_sign_in_at, created_at, updated_at)
    select ${id(2)}, ${id(1)}, case when n % 10 = 0 then 'google' when n % 500 = 1 then 'figma' else 'email' end,
      n::text, jsonb_build_object('sub', n::text, 'email', ${email}), now() - age, now() - age, now() - age
    ${rows}`,
  `insert into auth.sessions (id, user_id, created_at, updated_at, refreshed_at, aal, user_agent, ip)
    select ${id(3)}, ${id(1)}, now() - age, now() - age, now() at time zone 'utc', 'aal1', 'bench', '192.0.2.1' ${rows}`,
  `insert into auth.refresh_tokens (instance_id, token, user_id, revoked, created_at, updated_at, parent, session_id)
    select ${noInstance}, md5(n::text), ${id(1)}, false, now() - age, now() - age, '', ${id(3)} ${rows}`,
  `insert into auth.audit_log_entries (id, instance_id, payload, created_at, ip_address)
    select ${id(4)}, ${noInstance}, json_build_object('actor_id', ${id(1)}, 'actor_username', ${email},
      'actor_kind', case when n % 500 = 5 then 'administrator' else 'user' end,
      'action', case when n % 200 = 5 then 'login_failed' else 'login' end, 'log_type', 'account'), now() - age,
      '192.0.2.1' ${rows}`,
  `insert into auth.tollgate_events (user_id, type, data, created_at, attempts, failed_at)
    select ${id(1)}, 'user.created', '{}', now() - age, 1, now() - age ${rows}`,
];

/**
 * Replaces the rows of a migrated database by users that have an identity, a session, an audit
 * entry and an event each. One in 3 has a phone number, in 10 and 500 an identity of google and
 * figma, in 20 is unconfirmed, in 50 anonymous, in 100 on the plan gold, in 200 banned, in 500 in
 * the role support. Of the audit entries, one in 200 is a failed sign-in, and one in 500 of an
 * administrator.
 */
export async function fillUsers(sql: Sql, count: number): Promise<void> {
  await sql.unsafe('truncate auth.users, auth.audit_log_entries, auth.tollgate_events cascade');
  // Without checks of foreign keys and triggers, a fill takes half the time.
  await sql.unsafe(`set session_replication_role = 'replica'`);
  for (const fill of fills)
    for (let from = 1; from <= count; from += batchRows)
      await sql.unsafe(fill, [from, Math.min(from + batchRows - 1, count), count]);
  // Index-only scans need the visibility map, and the planner needs statistics.
  await sql.unsafe('vacuum analyze');
}
