import { join } from 'node:path';
import type { Logger } from '@tollgate/kit/logger';
import { runner } from 'node-pg-migrate';
import { Client } from 'pg';

/** What the migrations run against. */
export interface MigrationOptions {
  readonly databaseUrl: string;
  readonly dbNamespace: string;
}

const connectTimeoutMs = 10_000;

/**
 * Brings the schema up to date and answers the names of the migrations that ran. Of several that start together one works
 * and the others wait for it.
 */
export async function migrate(
  { databaseUrl, dbNamespace }: MigrationOptions,
  { logger }: { readonly logger: Logger },
): Promise<string[]> {
  const client = new Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: 'tollgate-auth-migrate',
  });
  await client.connect();
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
