import type { Logger } from '@tollgate/kit/logger';
import { type Client, escapeIdentifier } from 'pg';
import type { ReadRows } from './schema.ts';
import { type Fragment, fragment, raw } from './statement.ts';

/** An index of our own. GoTrue works on the schema with or without it. */
interface OwnIndex {
  readonly name: `tollgate_${string}`;
  readonly table: string;
  /** The part of `create index` after the table. */
  readonly definition: string;
  /** Only where this extension is installed. The user of the server may not be allowed to. */
  readonly extension?: 'pg_trgm';
}

/**
 * Longest prefix of a text in metadata that an index has: PostgreSQL rejects rows whose index entry
 * is longer than 2,704 bytes.
 */
const maxIndexedChars = 100;

/** The part of a text in metadata that an index has. */
function indexedText(expression: string): string {
  return `left(${expression}, ${maxIndexedChars})`;
}

/** Whether an index has all of a text in metadata, so that equal entries are equal texts. */
export function isIndexedWhole(text: string): boolean {
  return [...text].length < maxIndexedChars;
}

/** Does what {@link indexedText} does, in a statement. */
export function indexed<V>(expression: Fragment<V>): Fragment<V> {
  return fragment`left(${expression}, ${raw(maxIndexedChars)})`;
}

/** Indexed expressions. A condition uses the index only if it has the very same expression. */
export const indexedExpressions = {
  email: 'lower(email)',
  /** Searches for substrings use it. */
  wholeName: "(raw_user_meta_data ->> 'full_name')",
  fullName: `lower(${indexedText("raw_user_meta_data ->> 'full_name'")})`,
  plan: indexedText("raw_app_meta_data ->> 'plan'"),
  actorId: indexedText("payload ->> 'actor_id'"),
  action: indexedText("payload ->> 'action'"),
  actorKind: indexedText("payload ->> 'actor_kind'"),
} as const;

/**
 * The filters of lists can be evaluated without the row. `where deleted_at is null` would be
 * smaller, but each lookup of a user implies it: while the table is small, plans would read the
 * whole index.
 */
const filteredColumns = 'deleted_at, confirmed_at, last_sign_in_at, banned_until, is_anonymous, role';

/** Lists and totals of users that do not match a common condition read no rows. */
const exceptionColumns = `(created_at, id) include (aud, ${filteredColumns})`;

/** The role of nearly all users, by default. */
const commonRole = 'authenticated';

const trigrams = 'gin_trgm_ops';

/** Listed by what is slow without them: lists first, then cleanup. */
export const ownIndexes: readonly OwnIndex[] = [
  {
    name: 'tollgate_users_created',
    table: 'users',
    definition: `(aud, created_at, id) include (${filteredColumns})`,
  },
  // Smaller, for totals.
  { name: 'tollgate_users_role', table: 'users', definition: '(aud, deleted_at, role)' },
  {
    name: 'tollgate_users_email',
    table: 'users',
    definition: `(${indexedExpressions.email} text_pattern_ops)`,
  },
  { name: 'tollgate_users_phone', table: 'users', definition: '(phone text_pattern_ops)' },
  {
    name: 'tollgate_users_full_name',
    table: 'users',
    definition: `(${indexedExpressions.fullName} text_pattern_ops)`,
  },
  {
    name: 'tollgate_users_last_sign_in',
    table: 'users',
    definition: '(last_sign_in_at) where last_sign_in_at is not null',
  },
  {
    name: 'tollgate_users_unconfirmed',
    table: 'users',
    definition: `${exceptionColumns} where confirmed_at is null`,
  },
  {
    name: 'tollgate_users_banned',
    table: 'users',
    definition: `${exceptionColumns} where banned_until is not null`,
  },
  {
    name: 'tollgate_users_anonymous',
    table: 'users',
    definition: `${exceptionColumns} where is_anonymous`,
  },
  // These have the order of lists, as those of the audit log.
  {
    name: 'tollgate_users_role_created',
    table: 'users',
    definition: `(role, created_at, id) include (aud, ${filteredColumns.replace(', role', '')}) where role <> '${commonRole}'`,
  },
  {
    name: 'tollgate_users_plan_created',
    table: 'users',
    definition: `(${indexedExpressions.plan}, created_at, id) where raw_app_meta_data ->> 'plan' is not null`,
  },
  {
    name: 'tollgate_users_substrings',
    table: 'users',
    definition: `using gin (${indexedExpressions.email} ${trigrams}, phone ${trigrams}, ${indexedExpressions.wholeName} ${trigrams})`,
    extension: 'pg_trgm',
  },
  { name: 'tollgate_identities_provider', table: 'identities', definition: '(provider, user_id)' },
  { name: 'tollgate_audit_created', table: 'audit_log_entries', definition: '(created_at, id)' },
  // In the order of lists: a page of a filter reads its entries only.
  {
    name: 'tollgate_audit_actor',
    table: 'audit_log_entries',
    definition: `(${indexedExpressions.actorId}, created_at, id)`,
  },
  {
    name: 'tollgate_audit_action',
    table: 'audit_log_entries',
    definition: `(${indexedExpressions.action}, created_at, id)`,
  },
  {
    name: 'tollgate_audit_actor_kind',
    table: 'audit_log_entries',
    definition: `(${indexedExpressions.actorKind}, created_at, id) where ${indexedExpressions.actorKind} <> 'user'`,
  },
  { name: 'tollgate_sessions_created', table: 'sessions', definition: '(created_at)' },
  {
    name: 'tollgate_refresh_tokens_revoked',
    table: 'refresh_tokens',
    definition: '(updated_at) where revoked',
  },
  { name: 'tollgate_one_time_tokens_created', table: 'one_time_tokens', definition: '(created_at)' },
  {
    name: 'tollgate_mfa_factors_unverified',
    table: 'mfa_factors',
    definition: `(created_at) where status = 'unverified'`,
  },
  {
    name: 'tollgate_api_keys_expiry',
    table: 'api_keys',
    definition: '(expires_at) where expires_at is not null',
  },
  {
    name: 'tollgate_oauth_authorizations_expiry',
    table: 'oauth_authorizations',
    definition: '(expires_at)',
  },
  {
    name: 'tollgate_events_expiry',
    table: 'tollgate_events',
    definition: '(coalesce(retry_until, created_at))',
  },
];

/** Indexes of earlier versions, which others replace. */
const replacedIndexes = ['tollgate_users_plan'];

const missingIndexesQuery = `
  select name from unnest($1::text[], $3::text[], $4::text[]) with ordinality as o(name, extension, table_name, position)
  where (extension is null or exists (select from pg_extension where extname = extension)) and exists (
    select from pg_class t where t.relname = o.table_name
      and t.relnamespace = (select oid from pg_namespace where nspname = coalesce($2::text, current_schema()))
  ) and not exists (
    select from pg_class c join pg_index i on i.indexrelid = c.oid
    where c.relname = o.name and i.indisvalid
      and c.relnamespace = (select oid from pg_namespace where nspname = coalesce($2::text, current_schema())))
  order by position`;

/**
 * Names of the indexes that do not exist, or are not complete. Schemas of earlier versions of
 * GoTrue lack tables of the OAuth server, whose indexes are not missing then. `schema` defaults to
 * that of the connection.
 */
export async function findMissingIndexes(readRows: ReadRows, schema?: string): Promise<string[]> {
  const rows = await readRows(missingIndexesQuery, [
    ownIndexes.map(({ name }) => name),
    schema ?? null,
    ownIndexes.map(({ extension }) => extension ?? null),
    ownIndexes.map(({ table }) => table),
  ]);
  return rows.map(({ name }) => String(name));
}

interface BuildOptions {
  readonly schema: string;
  /** Takes no lock that blocks writes, but longer, and waits for all transactions that are open. */
  readonly concurrently: boolean;
  readonly logger: Logger;
}

const lockKey = (schema: string): string => `tollgate_indexes ${schema}`;

/**
 * Makes the missing indexes, one after the other. Returns false if another process is making them:
 * two builds of one table at a time would wait for each other. The lock ends with the connection.
 */
export async function buildIndexes(client: Client, options: BuildOptions): Promise<boolean> {
  const { schema, concurrently, logger } = options;
  const readRows: ReadRows = async (text, values = []) => (await client.query(text, [...values])).rows;
  const [lock] = await readRows('select pg_try_advisory_lock(hashtextextended($1, 0)) as taken', [
    lockKey(schema),
  ]);
  if (lock?.taken !== true) {
    logger.info('another process is making indexes');
    return false;
  }
  try {
    const missing = new Set(await findMissingIndexes(readRows, schema));
    const indexes = ownIndexes.filter(({ name }) => missing.has(name));
    const mode = concurrently ? 'concurrently' : '';
    const qualified = (name: string): string => `${escapeIdentifier(schema)}.${escapeIdentifier(name)}`;
    await readRows('set statement_timeout = 0');
    for (const { name, table, definition, extension } of indexes) {
      const startedMs = performance.now();
      // An interrupted build leaves an invalid index, which costs time and serves no query.
      await readRows(`drop index ${mode} if exists ${qualified(name)}`);
      const columns =
        extension === undefined ? definition : await qualifyTrigrams(readRows, { definition, extension });
      await readRows(`create index ${mode} ${name} on ${qualified(table)} ${columns}`);
      if (concurrently)
        logger.info(
          { index: name, table, tookMs: Math.round(performance.now() - startedMs) },
          'made an index',
        );
    }
    if (indexes.length > 0)
      for (const name of replacedIndexes) await readRows(`drop index ${mode} if exists ${qualified(name)}`);
    // Makes statistics of indexed expressions. An empty table keeps the estimates of one that was
    // never analyzed: PostgreSQL plans sequential scans for a table that it knows to be empty.
    if (concurrently)
      for (const table of new Set(indexes.map((index) => index.table)))
        await readRows(`analyze ${qualified(table)}`);
    return true;
  } finally {
    await readRows('select pg_advisory_unlock(hashtextextended($1, 0))', [lockKey(schema)]);
  }
}

/** The schema of an extension is not always in the search path. */
async function qualifyTrigrams(
  readRows: ReadRows,
  { definition, extension }: { readonly definition: string; readonly extension: string },
): Promise<string> {
  const [row] = await readRows(
    'select extnamespace::regnamespace::text as schema from pg_extension where extname = $1',
    [extension],
  );
  return definition.replaceAll(trigrams, `${row?.schema}.${trigrams}`);
}
