import type { Sql } from 'postgres';
import { fillUsers, id } from '../users.ts';

/** Rows of each kind besides users. */
export interface RecordCounts {
  readonly users: number;
  readonly organizations: number;
  readonly apiKeys: number;
  readonly clients: number;
  /** Entries of the audit log besides one of each user. */
  readonly auditEntries: number;
}

/** Members of the largest organization, the maximum that administrators of organizations reach. */
const largestOrganization = 1000;

/** Sessions of the user with the most. */
const mostSessions = 100;

/** Ids of `fillUsers`. */
const userId = (n: string) => id(1, n);

/** Fills a migrated database with users, and what belongs to them. */
export async function fillRecords(sql: Sql, counts: RecordCounts): Promise<void> {
  await fillUsers(sql, counts.users);
  await sql.unsafe(`set session_replication_role = 'replica'`);
  const { organizations, apiKeys, clients, auditEntries, users } = counts;
  const series = (count: number) => `from generate_series(1, ${count}) n`;
  const age = `now() - make_interval(mins => n)`;
  for (const statement of [
    `insert into auth.organizations (id, name, slug, plan, created_at, updated_at)
      select ${id(10)}, 'Organization ' || n, 'organization-' || n, case when n % 10 = 0 then 'pro' end, ${age}, ${age}
      ${series(organizations)}`,
    `insert into auth.organization_members (organization_id, user_id, role)
      select ${id(10, 'o')}, ${userId('((o * 10 + m) % $1::int) + 1')}, case when m = 1 then 'owner' else 'member' end
      from generate_series(1, ${organizations}) o,
        lateral generate_series(1, case when o = 1 then least(${largestOrganization}, $1::int) else 10 end) m`,
    `insert into auth.organization_domains (organization_id, domain, token, verified_at)
      select ${id(10)}, 'example-' || n || '.com', md5(n::text), case when n % 2 = 0 then now() end ${series(organizations)}`,
    `insert into auth.api_keys (id, name, prefix, last4, digest, user_id, scopes, plan, created_at, updated_at, last_used_at)
      select ${id(11)}, 'key ' || n, 'tgk', right(md5(n::text), 4), encode(sha256(n::text::bytea), 'hex'),
        case when n % 2 = 0 then ${userId('(n % $1::int) + 1')} end, '{orders:read}', case when n % 5 = 0 then 'pro' end,
        ${age}, ${age}, case when n % 3 = 0 then ${age} end ${series(apiKeys)}`,
    `insert into auth.oauth_clients (id, registration_type, redirect_uris, grant_types, client_name, client_type,
        token_endpoint_auth_method, created_at, updated_at)
      select ${id(12)}, 'manual', 'https://app-' || n || '.example.com/callback', 'authorization_code,refresh_token',
        'Application ' || n, 'public', 'none', ${age}, ${age} ${series(clients)}`,
    `insert into auth.sessions (id, user_id, created_at, updated_at, refreshed_at, aal, user_agent, ip)
      select ${id(13)}, ${userId('1')}, ${age}, ${age}, now() at time zone 'utc', 'aal1',
        'Mozilla/5.0 (X11; Linux x86_64)', '192.0.2.1' ${series(mostSessions)}`,
    `insert into auth.audit_log_entries (id, instance_id, payload, created_at, ip_address)
      select ${id(14)}, '00000000-0000-0000-0000-000000000000'::uuid, json_build_object('actor_id', ${userId('(n % 1000) + 1')},
        'actor_username', 'user-of-the-log', 'actor_kind', 'user', 'action', case when n % 3 = 0 then 'token_refreshed' else 'login' end,
        'log_type', 'account'), now() - make_interval(secs => n), '192.0.2.1' ${series(auditEntries)}`,
  ])
    await sql.unsafe(statement, statement.includes('$1') ? [users] : []);
  await sql.unsafe('vacuum analyze');
}

/** Ids of rows with a page of their own. */
export const recordIds = {
  /** A user with many sessions. */
  user: '00000001-0000-4000-8000-000000000001',
  /** The largest organization. */
  organization: '0000000a-0000-4000-8000-000000000001',
  apiKey: '0000000b-0000-4000-8000-000000000001',
  client: '0000000c-0000-4000-8000-000000000001',
} as const;
