import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { retry } from '@tollgate/kit/backoff';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import { compareText } from '@tollgate/kit/text';
import { runner } from 'node-pg-migrate';
import { type Client, escapeIdentifier } from 'pg';
import { openClient, UnreadableCertificate } from './connection-string.ts';
import { getCode, isTransient } from './failures.ts';
import { buildIndexes } from './indexes.ts';
import {
  describeProblems,
  describeTooOld,
  isGotrueColumn,
  type ReadRows,
  type SchemaProblems,
  schemaProblemsParameters,
  schemaProblemsQuery,
  toSchemaProblems,
  usedColumns,
  widensSessions,
} from './schema.ts';

/** Has the names of completed migrations. */
export const migrationsTable = 'tollgate_migrations';
/** Files run in alphabetical order. */
const migrationsFolder = join(import.meta.dirname, 'migrations');

/** Names of the pending migrations of a schema, in order. */
export async function findPendingMigrations(readRows: ReadRows, schema: string): Promise<string[]> {
  const files = await readdir(migrationsFolder);
  const names = files.filter((file) => file.endsWith('.sql')).map((file) => file.slice(0, -'.sql'.length));
  const table = `${escapeIdentifier(schema)}.${migrationsTable}`;
  const [row] = await readRows(`select has_table_privilege(to_regclass($1), 'SELECT') as readable`, [table]);
  if (row?.readable !== true) return names.sort(compareText);
  const completed = new Set((await readRows(`select name from ${table}`)).map(({ name }) => name));
  return names.filter((name) => !completed.has(name)).sort(compareText);
}

export interface MigrationOptions {
  readonly databaseUrl: string;
  readonly dbNamespace: string;
  /** How long to wait for an unavailable database. Default 0: no retries. */
  readonly dbStartupTimeoutMs?: number;
  /** Widens the password column, which is too short in GoTrue's schema. Default false. */
  readonly dbEncryptionEncrypt?: boolean;
}

export interface MigrationControl {
  readonly logger: Logger;
  /** Stops retries. */
  readonly signal?: AbortSignal;
  /** `wait`: makes indexes of tables with rows, too, which takes minutes if they are large. */
  readonly indexes?: 'wait';
}

const connectTimeoutMs = 10_000;
/** Short at first: a database that starts at the same time is ready within seconds. */
const backoff = { initialMs: 250, maxMs: 5_000, jitter: 0.2 };

/**
 * Runs pending migrations and returns their names. Concurrent calls wait for each other.
 *
 * @throws Error for operators: what is wrong with DATABASE_URL or the database, and what to do.
 */
export async function migrate(options: MigrationOptions, control: MigrationControl): Promise<string[]> {
  try {
    return await migrateWith(await connect(options, control), options, control);
  } catch (error) {
    control.signal?.throwIfAborted();
    const isExplained = error instanceof UnusableSchema || error instanceof UnreadableCertificate;
    throw isExplained ? error : explainMigrationFailure(error, options);
  }
}

/** The schema is not one that this version can use. */
class UnusableSchema extends Error {}

/** Connects, with retries while the database is unavailable. */
function connect(options: MigrationOptions, { logger, signal }: MigrationControl): Promise<Client> {
  const { databaseUrl, dbStartupTimeoutMs = 0 } = options;
  const attempt = (): Promise<Client> =>
    openClient(
      databaseUrl,
      { connectionTimeoutMillis: connectTimeoutMs, application_name: 'tollgate-auth-migrate' },
      // Queries report a lost connection; an unhandled error event would end the process.
      (client) => client.on('error', () => undefined),
    );
  if (dbStartupTimeoutMs === 0) return attempt();
  return retry(attempt, {
    backoff,
    maxElapsedMs: dbStartupTimeoutMs,
    isRetryable: isTransient,
    ...(signal && { signal }),
    onRetry: ({ error, delayMs }) =>
      logger.warn(
        { problem: explainMigrationFailure(error, options).message, retryInMs: Math.round(delayMs) },
        'database unavailable, retrying',
      ),
  });
}

async function migrateWith(
  client: Client,
  options: MigrationOptions,
  { logger, indexes }: MigrationControl,
): Promise<string[]> {
  const { dbNamespace } = options;
  try {
    const before = await findProblems(client, options);
    rejectOldSchema(before, options);
    const ran = await runner({
      dbClient: client,
      dir: migrationsFolder,
      direction: 'up',
      schema: dbNamespace,
      createSchema: !(await hasSchema(client, dbNamespace)),
      migrationsTable,
      advisoryLockMode: 'wait',
      logger: {
        debug: (line) => logger.debug(line),
        info: (line) => logger.debug(line),
        warn: (line) => logger.warn(line),
        error: (line) => logger.error(line),
      },
    });
    if (options.dbEncryptionEncrypt) await widenPasswords(client);
    await checkSchema(client, options);
    const concurrently = !(await isNew(client, dbNamespace));
    // The server makes those of tables with rows while it serves.
    if (!concurrently || indexes === 'wait')
      await buildIndexes(client, { schema: dbNamespace, concurrently, logger });
    if (widensSessions(before))
      logger.warn(
        'added columns to sessions: GoTrue versions before October 2025 can no longer refresh sessions on this database',
      );
    const names = ran.map(({ name }) => name);
    logger.info({ migrations: names, schema: dbNamespace }, 'schema is up to date');
    return names;
  } finally {
    await client.end();
  }
}

/** Creating a schema requires a privilege on the database, even if the schema exists. */
async function hasSchema(client: Client, name: string): Promise<boolean> {
  const { rows } = await client.query('select 1 from pg_namespace where nspname = $1', [name]);
  return rows.length > 0;
}

/** Whether the large tables are empty. */
async function isNew(client: Client, schema: string): Promise<boolean> {
  const tables = ['users', 'audit_log_entries'].map((table) => `${escapeIdentifier(schema)}.${table}`);
  const { rows } = await client.query(
    `select not exists (${tables.map((table) => `select from ${table}`).join(' union all ')}) as is_new`,
  );
  return rows[0]?.is_new === true;
}

/** Runs before any change: an old schema would fail in the middle of the migrations. */
function rejectOldSchema({ missingColumns }: SchemaProblems, options: MigrationOptions): void {
  const missing = missingColumns.filter(isGotrueColumn);
  if (missing.length === 0) return;
  throw new UnusableSchema(
    `the schema ${options.dbNamespace} of ${describeDatabase(options)} is ${describeTooOld(missing)}`,
  );
}

async function checkSchema(client: Client, options: MigrationOptions): Promise<void> {
  const problems = describeProblems(await findProblems(client, options));
  if (problems === undefined) return;
  throw new UnusableSchema(
    `the schema ${options.dbNamespace} of ${describeDatabase(options)} ${problems}: revert manual changes, or use a version of Tollgate that supports this schema`,
  );
}

async function findProblems(client: Client, { dbNamespace }: MigrationOptions): Promise<SchemaProblems> {
  const { rows } = await client.query(
    schemaProblemsQuery,
    schemaProblemsParameters(usedColumns, dbNamespace),
  );
  return toSchemaProblems(rows);
}

/**
 * Encryption makes hashes 50 % longer. A column that a view uses is not changed; it is long enough
 * for the hashes of this server.
 */
async function widenPasswords(client: Client): Promise<void> {
  await client.query(`do $$ begin
    if (select atttypid from pg_attribute where attrelid = 'users'::regclass and attname = 'encrypted_password') <> 'text'::regtype then
      alter table users alter column encrypted_password type text;
    end if;
  exception when feature_not_supported then
    raise notice 'users.encrypted_password stays as it is: a view uses it';
  end $$`);
}

export interface DatabaseTarget {
  readonly databaseUrl: string;
  readonly dbNamespace: string;
}

/** Explains a failed migration to operators. The error itself is the cause. */
export function explainMigrationFailure(error: unknown, target: DatabaseTarget): Error {
  const because = getErrorMessage(error);
  return new Error(`${getAdvice(error, target)}: ${because}`, { cause: error });
}

function getAdvice(error: unknown, { databaseUrl, dbNamespace }: DatabaseTarget): string {
  const { where, user, database } = parseTarget(databaseUrl);
  if (isTransient(error))
    return `PostgreSQL is not reachable ${where}: check that it is running and that DATABASE_URL is correct`;
  switch (getCode(error)) {
    case '28P01':
    case '28000':
      return `PostgreSQL ${where} rejected the user ${user} or the password of DATABASE_URL`;
    case '3D000':
      return `PostgreSQL ${where} has no database ${database}: create it, or change DATABASE_URL`;
    case '42501':
      return `the user ${user} is not allowed to change the schema ${dbNamespace} of database ${database}: make it the owner, or run tollgate-auth migrate as another user`;
    default:
      return `failed to migrate the schema ${dbNamespace} of database ${database} ${where}`;
  }
}

/** Names the database, without the password. */
export function describeDatabase({ databaseUrl }: Pick<DatabaseTarget, 'databaseUrl'>): string {
  const { where, database } = parseTarget(databaseUrl);
  return `database ${database} ${where}`;
}

function parseTarget(databaseUrl: string): { where: string; user: string; database: string } {
  // URLs with several hosts cannot be parsed.
  const url = URL.parse(databaseUrl);
  if (url === null) return { where: 'at DATABASE_URL', user: '', database: '' };
  const database = decode(url.pathname.slice(1)) || decode(url.username);
  return { where: `at ${url.host || 'the local socket'}`, user: decode(url.username), database };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
