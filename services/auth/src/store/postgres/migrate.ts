import { join } from 'node:path';
import { retry } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { runner } from 'node-pg-migrate';
import { Client } from 'pg';
import { explainStartFailure, isAway } from './explain-start-failure.ts';

/** What the migrations run against. */
export interface MigrationOptions {
  readonly databaseUrl: string;
  readonly dbNamespace: string;
  /** How long to wait for a database that does not answer. Default 0: not at all. */
  readonly dbStartupTimeoutMs?: number;
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
    throw explainStartFailure(error, options);
  }
}

/** A connection, once there is a database to connect to. */
function connect(options: MigrationOptions, { logger, signal }: MigrationDeps): Promise<Client> {
  const { databaseUrl, dbStartupTimeoutMs = 0 } = options;
  const attempt = async (): Promise<Client> => {
    const client = new Client({
      connectionString: databaseUrl,
      connectionTimeoutMillis: connectTimeoutMs,
      application_name: 'tollgate-auth-migrate',
    });
    // A connection that breaks fails what runs on it; the event would end the process.
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
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
  { dbNamespace }: MigrationOptions,
  { logger }: MigrationDeps,
): Promise<string[]> {
  try {
    const ran = await runner({
      dbClient: client,
      dir: join(import.meta.dirname, 'migrations'),
      direction: 'up',
      schema: dbNamespace,
      createSchema: true,
      migrationsTable: 'tollgate_migrations',
      advisoryLockMode: 'wait',
      logger: {
        debug: (line) => logger.debug(line),
        info: (line) => logger.debug(line),
        warn: (line) => logger.warn(line),
        error: (line) => logger.error(line),
      },
    });
    const names = ran.map(({ name }) => name);
    logger.info({ migrations: names, schema: dbNamespace }, 'schema is up to date');
    return names;
  } finally {
    await client.end();
  }
}
