import { getErrorMessage } from '@tollgate/kit/errors';
import { type Client, escapeIdentifier } from 'pg';
import { openClient, UnreadableCertificate } from '../db/connection-string.ts';
import { findMissingIndexes } from '../db/indexes.ts';
import {
  describeDatabase,
  explainMigrationFailure,
  findPendingMigrations,
  migrationsTable,
} from '../db/migrate.ts';
import {
  describeTooOld,
  isGotrueColumn,
  noOAuthServer,
  oauthServerColumns,
  type ReadRows,
  type SchemaProblems,
  schemaProblemsParameters,
  schemaProblemsQuery,
  toSchemaProblems,
  usedColumns,
  widensSessions,
} from '../db/schema.ts';
import { providerNames } from '../identity-providers/registry.ts';
import type { DatabaseReport, Finding } from './check.ts';

interface Options {
  readonly dbNamespace: string;
  /** Existing tables. */
  readonly tables: readonly string[];
  readonly keyIds: readonly string[];
}

/** A query that counts rows by kind, and the finding for each kind. */
interface RowCount {
  readonly table: string;
  /** Columns `kind` and `count`. */
  readonly select: (table: string) => string;
  readonly describe: (kind: string, count: string) => Finding | undefined;
}

const encrypted = 'encrypted with key ';

const hashKinds: Readonly<Record<string, string>> = {
  none: 'users without a password, who sign in by link or code',
  bcrypt: 'bcrypt, replaced by argon2id at the next sign-in',
  argon2: 'argon2, kept or replaced at the next sign-in',
  fbscrypt: 'Firebase scrypt, replaced by argon2id at the next sign-in',
  scrypt: 'scrypt, replaced by argon2id at the next sign-in',
  pbkdf2: 'PBKDF2, replaced by argon2id at the next sign-in',
  unknown: 'of an unknown format: CANNOT BE VERIFIED, the users must reset their password',
};

/** GoTrue does not limit metadata; here tokens do. */
const metadataBytes = { raw_user_meta_data: 4096, raw_app_meta_data: 2048 } as const;

function getRowCounts({ keyIds }: Options): readonly RowCount[] {
  return [
    {
      table: 'users',
      select: (table) => `select 'users' as kind, count(*) from ${table}`,
      describe: plain('users'),
    },
    {
      table: 'users',
      select: (table) => `select case
          when coalesce(encrypted_password, '') = '' then 'none'
          when encrypted_password like '{%' then '${encrypted}' || coalesce(substring(encrypted_password from '"key_id"\\s*:\\s*"([^"]*)"'), '?')
          when encrypted_password ~ '^\\$2[aby]\\$' then 'bcrypt'
          when encrypted_password ~ '^\\$argon2(id|i)\\$' then 'argon2'
          when encrypted_password like '$fbscrypt$%' then 'fbscrypt'
          when encrypted_password like '$scrypt$%' then 'scrypt'
          when encrypted_password ~ '^(\\$pbkdf2[-$]|pbkdf2_)' then 'pbkdf2'
          else 'unknown' end as kind, count(*) from ${table} group by 1 order by 1`,
      describe: (kind, count) => ({ subject: 'passwords', text: `${count} ${passwordText(kind, keyIds)}` }),
    },
    {
      table: 'users',
      select: (table) => `select 'sso' as kind, count(*) from ${table} where is_sso_user`,
      describe: unlessZero(
        'single sign-on',
        (count) => `${count} users, who CANNOT SIGN IN: SAML is not supported yet`,
      ),
    },
    {
      table: 'identities',
      select: (table) =>
        `select provider as kind, count(*) from ${table} where provider not in ('email', 'phone') group by 1 order by 1`,
      describe: (provider, count) => ({
        subject: `identities of ${provider}`,
        text: isServed(provider)
          ? `${count}, supported`
          : `${count}, whose users cannot sign in with ${provider} yet`,
      }),
    },
    {
      table: 'users',
      select: (
        table,
      ) => `select 'none' as kind, count(*) from ${table} where coalesce(encrypted_password, '') = ''
          and coalesce(email, '') = '' and coalesce(phone, '') = '' and not is_anonymous and not is_sso_user`,
      describe: unlessZero(
        'users without password, email and phone',
        (count) => `${count}, who can sign in with an external provider only`,
      ),
    },
    {
      table: 'mfa_factors',
      select: (table) =>
        `select factor_type::text as kind, count(*) from ${table} where status::text = 'verified' group by 1 order by 1`,
      describe: (kind, count) => ({
        subject: `factors by ${kind}`,
        text: ['totp', 'phone', 'webauthn', 'recovery_code'].includes(kind)
          ? `${count}, supported`
          : `${count}, CANNOT BE VERIFIED: not supported yet`,
      }),
    },
    {
      table: 'sessions',
      select: (table) => `select 'sessions' as kind, count(*) from ${table}`,
      describe: plain('sessions'),
    },
    ...Object.entries(metadataBytes).map(
      ([column, bytes]): RowCount => ({
        table: 'users',
        select: (table) =>
          `select '' as kind, count(*) from ${table} where octet_length(${column}::text) > ${bytes}`,
        describe: unlessZero(
          column,
          (count) => `${count} users have more than ${bytes / 1024} KiB: tokens have only what fits`,
        ),
      }),
    ),
    {
      table: 'webauthn_credentials',
      select: (table) => `select '' as kind, count(*) from ${table}`,
      describe: unlessZero('passkeys', (count) => `${count}, supported`),
    },
    {
      table: 'custom_oauth_providers',
      select: (table) => `select '' as kind, count(*) from ${table}`,
      describe: unlessZero('custom_oauth_providers', (count) => `${count}, supported`),
    },
    {
      table: 'saml_providers',
      select: (table) => `select '' as kind, count(*) from ${table}`,
      describe: unlessZero('saml_providers', (count) => `${count}, of a feature that is not supported yet`),
    },
    {
      table: 'oauth_clients',
      select: (table) =>
        `select '' as kind, count(*) from ${table} where deleted_at is null and grant_types <> 'client_credentials'`,
      describe: unlessZero(
        'oauth_clients',
        (count) => `${count}, whose users CANNOT SIGN IN with them: only client_credentials is supported yet`,
      ),
    },
  ];
}

function isServed(provider: string): boolean {
  return provider.startsWith('custom:') || providerNames.some((name) => name === provider);
}

/** Counts the rows that matter to a migration. Failed counts are reported. */
async function countRows(readRows: ReadRows, options: Options): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const { table, select, describe } of getRowCounts(options)) {
    if (!options.tables.includes(table)) continue;
    try {
      const rows = await readRows(select(`${escapeIdentifier(options.dbNamespace)}.${table}`));
      found.push(...rows.flatMap(({ kind, count }) => describe(String(kind), String(count)) ?? []));
    } catch (error) {
      found.push({
        subject: table,
        text: `not counted: ${getErrorMessage(error)}`,
      });
    }
  }
  return found;
}

function plain(subject: string): RowCount['describe'] {
  return (_kind, count) => ({ subject, text: count });
}

function unlessZero(subject: string, text: (count: string) => string): RowCount['describe'] {
  return (_kind, count) => (count === '0' ? undefined : { subject, text: text(count) });
}

function passwordText(kind: string, keyIds: readonly string[]): string {
  if (!kind.startsWith(encrypted)) return hashKinds[kind] ?? kind;
  return keyIds.includes(kind.slice(encrypted.length))
    ? kind
    : `${kind}, which the settings do not have: CANNOT BE VERIFIED`;
}

export interface InspectedDatabase {
  readonly databaseUrl: string;
  readonly dbNamespace: string;
  /** Ids of the keys that encrypted columns can be read with. */
  readonly keyIds: readonly string[];
  readonly hasOAuthServer: boolean;
}

/** The report, and the problems that would prevent the start. */
export interface Inspection {
  readonly stops: readonly Finding[];
  readonly database?: DatabaseReport;
}

const connectTimeoutMs = 10_000;
/** Counts read whole tables. */
const statementTimeoutMs = 60_000;

const noRollback: Finding = {
  subject: 'sessions',
  text: 'GoTrue before October 2025 CANNOT REFRESH SESSIONS after the migrations: update it first if it runs in parallel, or for a rollback',
};

/** Inspects a database in read-only transactions. */
export async function inspectDatabase(options: InspectedDatabase): Promise<Inspection> {
  if (!/^postgres(?:ql)?:\/\//.test(options.databaseUrl)) return { stops: [] };
  let client: Client | undefined;
  try {
    client = await openClient(
      options.databaseUrl,
      { connectionTimeoutMillis: connectTimeoutMs, application_name: 'tollgate-auth-check' },
      // Queries report a lost connection; an unhandled error event would end the process.
      (next) => next.on('error', () => undefined),
    );
    return await inspect(readOnly(client), options);
  } catch (error) {
    const { message } =
      error instanceof UnreadableCertificate ? error : explainMigrationFailure(error, options);
    return { stops: [{ subject: 'DATABASE_URL', text: message }] };
  } finally {
    await client?.end().catch(() => undefined);
  }
}

/**
 * One transaction per statement: works behind a pooler, and a failed statement affects no other.
 */
function readOnly(client: Client): ReadRows {
  return async (text, values = []) => {
    await client.query('begin transaction read only');
    try {
      await client.query(`set local statement_timeout = ${statementTimeoutMs}`);
      return (await client.query(text, [...values])).rows;
    } finally {
      await client.query('rollback');
    }
  };
}

async function inspect(readRows: ReadRows, options: InspectedDatabase): Promise<Inspection> {
  const { dbNamespace } = options;
  const tables = await listTables(readRows, dbNamespace);
  const pending = await findPendingMigrations(readRows, dbNamespace);
  const problems = toSchemaProblems(
    await readRows(schemaProblemsQuery, schemaProblemsParameters(usedColumns, dbNamespace)),
  );
  const tooOld = problems.missingColumns.filter(isGotrueColumn);
  const isGotrue = tables.includes('schema_migrations');
  const stops = [
    ...(tooOld.length === 0 ? [] : [{ subject: `schema ${dbNamespace}`, text: describeTooOld(tooOld) }]),
    ...unknownColumns(problems, dbNamespace),
    ...(isGotrue && options.hasOAuthServer ? await missingOAuthTables(readRows, dbNamespace) : []),
    ...(pending.length === 0 ? [] : await missingPrivileges(readRows, dbNamespace)),
  ];
  const database: DatabaseReport = {
    where: describeDatabase(options),
    server: await serverVersion(readRows),
    schema: dbNamespace,
    tollgateHasRun: tables.includes(migrationsTable),
    latestMigrationOfGotrue: isGotrue
      ? await latestGotrueMigration(readRows, dbNamespace).catch(() => '')
      : '',
    pendingMigrations: pending,
    adds: [...problems.missingTables, ...problems.missingColumns],
    rows: [
      ...(tables.length === 0 ? await otherSchemas(readRows, dbNamespace) : []),
      ...(isGotrue && widensSessions(problems) ? [noRollback] : []),
      ...(tables.length === 0 || tooOld.length > 0 ? [] : await missingIndexes(readRows, dbNamespace)),
      ...(tooOld.length > 0 ? [] : await countRows(readRows, { ...options, tables })),
    ],
  };
  return { stops, database };
}

/** The server does not change these tables of GoTrue. */
async function missingOAuthTables(readRows: ReadRows, schema: string): Promise<Finding[]> {
  const { missingTables, missingColumns } = toSchemaProblems(
    await readRows(schemaProblemsQuery, schemaProblemsParameters(oauthServerColumns, schema)),
  );
  if (missingTables.length === 0 && missingColumns.length === 0) return [];
  return [{ subject: `schema ${schema}`, text: noOAuthServer }];
}

/** A schema of GoTrue under another name: the server would start on an empty one. */
async function otherSchemas(readRows: ReadRows, schema: string): Promise<Finding[]> {
  const rows = await readRows(
    `select nspname::text as name from pg_namespace n join pg_class c on c.relnamespace = n.oid
      where relname in ('refresh_tokens', 'schema_migrations') group by 1 having count(*) = 2 order by 1`,
  );
  const names = rows.map(({ name }) => String(name)).join(', ');
  const elsewhere = names === '' ? '' : `, but GoTrue has tables in ${names}: set DB_NAMESPACE`;
  return [{ subject: `schema ${schema}`, text: `is empty and would be created${elsewhere}` }];
}

async function missingIndexes(readRows: ReadRows, schema: string): Promise<Finding[]> {
  const names = await findMissingIndexes(readRows, schema);
  if (names.length === 0) return [];
  const text = `${names.join(', ')}: missing or incomplete, lists of users are slow; the server makes them in the background, and tollgate-auth migrate before it ends`;
  return [{ subject: 'indexes', text }];
}

async function listTables(readRows: ReadRows, schema: string): Promise<string[]> {
  const rows = await readRows(
    `select relname::text as name from pg_class
      where relnamespace = (select oid from pg_namespace where nspname = $1) and relkind in ('r', 'p')`,
    [schema],
  );
  return rows.map(({ name }) => String(name));
}

function unknownColumns({ unknownColumns: names }: SchemaProblems, schema: string): Finding[] {
  if (names.length === 0) return [];
  const text = `requires values for ${names.join(', ')}, which are unknown to this version`;
  return [{ subject: `schema ${schema}`, text }];
}

/** Migrations create tables in the schema, or the schema, and alter those of GoTrue. */
async function missingPrivileges(readRows: ReadRows, schema: string): Promise<Finding[]> {
  const [privileges] = await readRows(
    `select current_user::text as user,
      case when exists (select from pg_namespace where nspname = $1) then has_schema_privilege($1, 'CREATE')
        else has_database_privilege(current_database(), 'CREATE') end as create`,
    [schema],
  );
  const others = await readRows(
    `select relname::text as name from pg_class
      where relnamespace = (select oid from pg_namespace where nspname = $1) and relkind in ('r', 'p')
        and relname = any ($2::text[]) and not pg_has_role(relowner, 'USAGE') order by 1`,
    [schema, Object.keys(usedColumns)],
  );
  const user = `user ${String(privileges?.user)}`;
  return [
    ...(privileges?.create === true
      ? []
      : [{ subject: user, text: `is not allowed to create tables in the schema ${schema}` }]),
    ...(others.length === 0
      ? []
      : [
          {
            subject: user,
            text: `does not own ${others.map(({ name }) => String(name)).join(', ')} of the schema ${schema}`,
          },
        ]),
  ];
}

/** Rejects if the user is not allowed to read the table. */
async function latestGotrueMigration(readRows: ReadRows, schema: string): Promise<string> {
  const rows = await readRows(
    `select coalesce(max(version), '') as version from ${escapeIdentifier(schema)}.schema_migrations`,
  );
  return String(rows[0]?.version ?? '');
}

async function serverVersion(readRows: ReadRows): Promise<string> {
  const rows = await readRows(`select current_setting('server_version') as version`);
  return `PostgreSQL ${String(rows[0]?.version)}`;
}
