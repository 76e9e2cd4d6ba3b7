import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { retry } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { compareText } from '@tollgate/kit/text';
import { runner } from 'node-pg-migrate';
import { type Client, escapeIdentifier } from 'pg';
import { describeDatabase, explainStartFailure, isAway } from './connection.ts';
import { openClient, UnreadableCertificate } from './connection-string.ts';
import {
  describeProblems,
  describeTooOld,
  isColumnOfGotrue,
  type SchemaProblems,
  schemaProblemsOf,
  schemaProblemsParameters,
  schemaProblemsQuery,
  usedColumns,
  widensSessions,
} from './schema.ts';

/** Runs a statement and answers its rows. */
export type ReadRows = (
  text: string,
  values?: readonly unknown[],
) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** Holds the names of the migrations that have run. */
export const migrationsTable = 'tollgate_migrations';
/** Its files run in the order of their names. */
const migrationsFolder = join(import.meta.dirname, 'migrations');

/** Names of the migrations that have not run in a schema, in the order in which they will. */
export async function pendingMigrations(readRows: ReadRows, schema: string): Promise<string[]> {
  const files = await readdir(migrationsFolder);
  const names = files.filter((file) => file.endsWith('.sql')).map((file) => file.slice(0, -'.sql'.length));
  const table = `${escapeIdentifier(schema)}.${migrationsTable}`;
  const [found] = await readRows(`select has_table_privilege(to_regclass($1), 'SELECT') as readable`, [
    table,
  ]);
  if (found?.readable !== true) return names.sort(compareText);
  const ran = new Set((await readRows(`select name from ${table}`)).map(({ name }) => name));
  return names.filter((name) => !ran.has(name)).sort(compareText);
}

/** What the migrations run against. */
export interface MigrationOptions {
  readonly databaseUrl: string;
  readonly dbNamespace: string;
  /** How long to wait for a database that does not answer. Default 0: not at all. */
  readonly dbStartupTimeoutMs?: number;
  /** Passwords are encrypted: the column of GoTrue is too short for some. Default false. */
  readonly dbEncryptionEncrypt?: boolean;
}

/** What they need besides. */
export interface MigrationDeps {
  readonly logger: Logger;
  /** Ends the waiting. */
  readonly signal?: AbortSignal;
}

const connectTimeoutMs = 10_000;
/** Quick at first: in a pod beside its database it is a matter of seconds. */
const pauses = { initialMs: 250, maxMs: 5_000, jitter: 0.2 };

/**
 * Brings the schema up to date and answers the names of the migrations that ran. Of several that start together one works
 * and the others wait for it.
 *
 * @throws Error that says what is wrong with DATABASE_URL or the database, and what to do.
 */
export async function migrate(options: MigrationOptions, deps: MigrationDeps): Promise<string[]> {
  try {
    return await migrateWith(await connect(options, deps), options, deps);
  } catch (error) {
    deps.signal?.throwIfAborted();
    const isClear = error instanceof UnusableSchema || error instanceof UnreadableCertificate;
    throw isClear ? error : explainStartFailure(error, options);
  }
}

/** The database answers, and its schema is of no use. */
class UnusableSchema extends Error {}

/** A connection, once there is a database to connect to. */
function connect(options: MigrationOptions, { logger, signal }: MigrationDeps): Promise<Client> {
  const { databaseUrl, dbStartupTimeoutMs = 0 } = options;
  const attempt = (): Promise<Client> =>
    openClient(
      databaseUrl,
      { connectionTimeoutMillis: connectTimeoutMs, application_name: 'tollgate-auth-migrate' },
      // A connection that breaks fails what runs on it; the event would end the process.
      (client) => client.on('error', () => undefined),
    );
  if (dbStartupTimeoutMs === 0) return attempt();
  return retry(attempt, {
    backoff: pauses,
    maxElapsedMs: dbStartupTimeoutMs,
    isRetryable: isAway,
    ...(signal && { signal }),
    onRetry: ({ error, delayMs }) =>
      logger.warn(
        { problem: explainStartFailure(error, options).message, retryInMs: Math.round(delayMs) },
        'the database does not answer, trying again',
      ),
  });
}

async function migrateWith(
  client: Client,
  options: MigrationOptions,
  { logger }: MigrationDeps,
): Promise<string[]> {
  const { dbNamespace } = options;
  try {
    const before = await findProblems(client, options);
    refuseOldSchema(before, options);
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
    if (widensSessions(before))
      logger.warn(
        'added columns to sessions: GoTrue from before October 2025 cannot refresh sessions on this database any more',
      );
    const names = ran.map(({ name }) => name);
    logger.info({ migrations: names, schema: dbNamespace }, 'schema is up to date');
    return names;
  } finally {
    await client.end();
  }
}

/** Creating a schema takes a privilege on the database, even if it is there. */
async function hasSchema(client: Client, name: string): Promise<boolean> {
  const { rows } = await client.query('select 1 from pg_namespace where nspname = $1', [name]);
  return rows.length > 0;
}

/** Runs before anything is changed: an old schema would fail in the middle of the migrations. */
function refuseOldSchema({ missingColumns }: SchemaProblems, options: MigrationOptions): void {
  const missing = missingColumns.filter(isColumnOfGotrue);
  if (missing.length === 0) return;
  throw new UnusableSchema(
    `the schema ${options.dbNamespace} of ${describeDatabase(options)} is ${describeTooOld(missing)}`,
  );
}

async function checkSchema(client: Client, options: MigrationOptions): Promise<void> {
  const problems = describeProblems(await findProblems(client, options));
  if (problems === undefined) return;
  throw new UnusableSchema(
    `the schema ${options.dbNamespace} of ${describeDatabase(options)} ${problems}. Restore what was changed by hand, or use a version of Tollgate that knows this schema`,
  );
}

async function findProblems(client: Client, { dbNamespace }: MigrationOptions): Promise<SchemaProblems> {
  const { rows } = await client.query(
    schemaProblemsQuery,
    schemaProblemsParameters(usedColumns, dbNamespace),
  );
  return schemaProblemsOf(rows);
}

/**
 * An encrypted hash is half as long again as the hash. A column that a view uses stays as it is,
 * which is enough for the hashes that this server makes.
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
