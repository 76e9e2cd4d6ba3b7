import { type Client, escapeIdentifier } from 'pg';
import { describeDatabase, explainMigrationFailure } from '../db/connection.ts';
import { openClient, UnreadableCertificate } from '../db/connection-string.ts';
import { findPendingMigrations, migrationsTable, type ReadRows } from '../db/migrate.ts';
import {
  describeTooOld,
  isGotrueColumn,
  type SchemaProblems,
  schemaProblemsParameters,
  schemaProblemsQuery,
  toSchemaProblems,
  usedColumns,
  widensSessions,
} from '../db/schema.ts';
import type { DatabaseReport, Finding } from './check.ts';

interface Options {
  readonly dbNamespace: string;
  /** Tables that the schema has. */
  readonly tables: readonly string[];
  readonly keyIds: readonly string[];
}

/** A count, and the finding for each group of it. */
interface Counted {
  readonly table: string;
  /** Columns `kind` and `count`. */
  readonly select: (table: string) => string;
  readonly describe: (kind: string, count: string) => Finding | undefined;
}

const encrypted = 'encrypted with key ';

const hashKinds: Readonly<Record<string, string>> = {
  none: 'users without a password: they sign in by link or code',
  bcrypt: 'bcrypt, replaced by argon2id at the next sign-in',
  argon2: 'argon2, taken as they are or replaced at the next sign-in',
  fbscrypt: 'scrypt of Firebase, replaced by argon2id at the next sign-in',
  unknown: 'of an unknown form: CANNOT BE CHECKED, their users have to reset the password',
};

/** GoTrue's metadata has any size; here a token carries so much of it. */
const metadataBytes = { raw_user_meta_data: 4096, raw_app_meta_data: 2048 } as const;

function countedRows({ keyIds }: Options): readonly Counted[] {
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
          else 'unknown' end as kind, count(*) from ${table} group by 1 order by 1`,
      describe: (kind, count) => ({ subject: 'passwords', text: `${count} ${passwordText(kind, keyIds)}` }),
    },
    {
      table: 'users',
      select: (table) => `select 'sso' as kind, count(*) from ${table} where is_sso_user`,
      describe: unlessZero(
        'single sign-on',
        (count) => `${count} users, who CANNOT SIGN IN: SAML is not served yet`,
      ),
    },
    {
      table: 'identities',
      select: (table) =>
        `select provider as kind, count(*) from ${table} where provider not in ('email', 'phone') group by 1 order by 1`,
      describe: (provider, count) => ({
        subject: `identities of ${provider}`,
        text: `${count}, whose users cannot sign in with ${provider} yet`,
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
        (count) => `${count}, who CANNOT SIGN IN: external providers are not served yet`,
      ),
    },
    {
      table: 'mfa_factors',
      select: (table) =>
        `select factor_type::text as kind, count(*) from ${table} where status::text = 'verified' group by 1 order by 1`,
      describe: (kind, count) => ({
        subject: `factors by ${kind}`,
        text: kind === 'totp' ? `${count}, work as they are` : `${count}, CANNOT BE VERIFIED: not served yet`,
      }),
    },
    {
      table: 'sessions',
      select: (table) => `select 'sessions' as kind, count(*) from ${table}`,
      describe: plain('sessions'),
    },
    ...Object.entries(metadataBytes).map(
      ([column, bytes]): Counted => ({
        table: 'users',
        select: (table) =>
          `select '' as kind, count(*) from ${table} where octet_length(${column}::text) > ${bytes}`,
        describe: unlessZero(
          column,
          (count) => `${count} users have more than ${bytes / 1024} KiB: tokens carry what fits`,
        ),
      }),
    ),
    ...['saml_providers', 'oauth_clients', 'custom_oauth_providers', 'webauthn_credentials'].map(
      (table): Counted => ({
        table,
        select: (name) => `select '' as kind, count(*) from ${name}`,
        describe: unlessZero(table, (count) => `${count}, of a feature that is not served yet`),
      }),
    ),
  ];
}

/** Counts the rows that matter to a switch. A count that fails is reported as such. */
async function countRows(readRows: ReadRows, options: Options): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const { table, select, describe } of countedRows(options)) {
    if (!options.tables.includes(table)) continue;
    try {
      const rows = await readRows(select(`${escapeIdentifier(options.dbNamespace)}.${table}`));
      found.push(...rows.flatMap(({ kind, count }) => describe(String(kind), String(count)) ?? []));
    } catch (error) {
      found.push({
        subject: table,
        text: `not counted: ${error instanceof Error ? error.message : String(error)}`,
      });
    }
  }
  return found;
}

function plain(subject: string): Counted['describe'] {
  return (_kind, count) => ({ subject, text: count });
}

function unlessZero(subject: string, text: (count: string) => string): Counted['describe'] {
  return (_kind, count) => (count === '0' ? undefined : { subject, text: text(count) });
}

function passwordText(kind: string, keyIds: readonly string[]): string {
  if (!kind.startsWith(encrypted)) return hashKinds[kind] ?? kind;
  return keyIds.includes(kind.slice(encrypted.length))
    ? kind
    : `${kind}, which the settings do not have: CANNOT BE CHECKED`;
}

/** Which database, and what is needed to inspect it. */
export interface InspectedDatabase {
  readonly databaseUrl: string;
  readonly dbNamespace: string;
  /** Ids of the keys that encrypted columns can be read with. */
  readonly keyIds: readonly string[];
}

/** The report, and the problems that would stop the start. */
export interface Inspection {
  readonly stops: readonly Finding[];
  readonly database?: DatabaseReport;
}

const connectTimeoutMs = 10_000;
/** Large tables are read as a whole. */
const statementTimeoutMs = 60_000;

const noWayBack: Finding = {
  subject: 'sessions',
  text: 'GoTrue of before October 2025 CANNOT REFRESH SESSIONS once the migrations have run: update it first for a canary or a way back',
};

/** Inspects a database in read-only transactions. */
export async function inspectDatabase(options: InspectedDatabase): Promise<Inspection> {
  if (!/^postgres(?:ql)?:\/\//.test(options.databaseUrl)) return { stops: [] };
  let client: Client | undefined;
  try {
    client = await openClient(
      options.databaseUrl,
      { connectionTimeoutMillis: connectTimeoutMs, application_name: 'tollgate-auth-check' },
      // A connection that breaks fails what runs on it; the event would end the process.
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

/** One transaction per statement: works behind a pooler, and a failed statement affects no other. */
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
  const tables = await tablesOf(readRows, dbNamespace);
  const pending = await findPendingMigrations(readRows, dbNamespace);
  const problems = toSchemaProblems(
    await readRows(schemaProblemsQuery, schemaProblemsParameters(usedColumns, dbNamespace)),
  );
  const tooOld = problems.missingColumns.filter(isGotrueColumn);
  const isGotrue = tables.includes('schema_migrations');
  const stops = [
    ...(tooOld.length === 0 ? [] : [{ subject: `schema ${dbNamespace}`, text: describeTooOld(tooOld) }]),
    ...unknownColumns(problems, dbNamespace),
    ...(pending.length === 0 ? [] : await missingPrivileges(readRows, dbNamespace)),
  ];
  const database: DatabaseReport = {
    where: describeDatabase(options),
    server: await serverVersion(readRows),
    schema: dbNamespace,
    tollgateHasRun: tables.includes(migrationsTable),
    latestMigrationOfGotrue: isGotrue ? await latestOfGotrue(readRows, dbNamespace).catch(() => '') : '',
    pendingMigrations: pending,
    adds: [...problems.missingTables, ...problems.missingColumns],
    rows: [
      ...(tables.length === 0 ? await otherSchemas(readRows, dbNamespace) : []),
      ...(isGotrue && widensSessions(problems) ? [noWayBack] : []),
      ...(tooOld.length > 0 ? [] : await countRows(readRows, { ...options, tables })),
    ],
  };
  return { stops, database };
}

/** A schema of GoTrue under another name: the server would start on an empty one. */
async function otherSchemas(readRows: ReadRows, schema: string): Promise<Finding[]> {
  const rows = await readRows(
    `select nspname::text as name from pg_namespace n join pg_class c on c.relnamespace = n.oid
      where relname in ('refresh_tokens', 'schema_migrations') group by 1 having count(*) = 2 order by 1`,
  );
  const names = rows.map(({ name }) => String(name)).join(', ');
  const elsewhere = names === '' ? '' : `, while GoTrue has its tables in ${names}: set DB_NAMESPACE to it`;
  return [{ subject: `schema ${schema}`, text: `is empty and would be made${elsewhere}` }];
}

async function tablesOf(readRows: ReadRows, schema: string): Promise<string[]> {
  const rows = await readRows(
    `select relname::text as name from pg_class
      where relnamespace = (select oid from pg_namespace where nspname = $1) and relkind in ('r', 'p')`,
    [schema],
  );
  return rows.map(({ name }) => String(name));
}

function unknownColumns({ unknownColumns: names }: SchemaProblems, schema: string): Finding[] {
  if (names.length === 0) return [];
  const text = `requires values for ${names.join(', ')}, which this version does not know`;
  return [{ subject: `schema ${schema}`, text }];
}

/** Migrations create tables in the schema, or the schema, and alter those of GoTrue. */
async function missingPrivileges(readRows: ReadRows, schema: string): Promise<Finding[]> {
  const [may] = await readRows(
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
  const user = `user ${String(may?.user)}`;
  return [
    ...(may?.create === true
      ? []
      : [{ subject: user, text: `may not create tables in the schema ${schema}` }]),
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

/** Rejects if the user may not read the table. */
async function latestOfGotrue(readRows: ReadRows, schema: string): Promise<string> {
  const rows = await readRows(
    `select coalesce(max(version), '') as version from ${escapeIdentifier(schema)}.schema_migrations`,
  );
  return String(rows[0]?.version ?? '');
}

async function serverVersion(readRows: ReadRows): Promise<string> {
  const rows = await readRows(`select current_setting('server_version') as version`);
  return `PostgreSQL ${String(rows[0]?.version)}`;
}
