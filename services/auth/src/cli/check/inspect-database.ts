import { type Client, escapeIdentifier } from 'pg';
import { openClient, UnreadableCertificate } from '../../store/postgres/connection-string.ts';
import { describeDatabase, explainStartFailure } from '../../store/postgres/explain-start-failure.ts';
import {
  migrationsTable,
  pendingMigrations,
  type ReadRows,
} from '../../store/postgres/schema/pending-migrations.ts';
import {
  describeTooOld,
  type SchemaProblems,
  schemaProblemsOf,
  schemaProblemsParameters,
  schemaProblemsQuery,
  widensSessions,
} from '../../store/postgres/schema/schema-problems.ts';
import { isColumnOfGotrue, usedColumns } from '../../store/postgres/schema/used-columns.ts';
import { countRows } from './count-rows.ts';
import type { DatabaseReport, Finding } from './report.ts';

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
    const { message } = error instanceof UnreadableCertificate ? error : explainStartFailure(error, options);
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
  const pending = await pendingMigrations(readRows, dbNamespace);
  const problems = schemaProblemsOf(
    await readRows(schemaProblemsQuery, schemaProblemsParameters(usedColumns, dbNamespace)),
  );
  const tooOld = problems.missingColumns.filter(isColumnOfGotrue);
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
