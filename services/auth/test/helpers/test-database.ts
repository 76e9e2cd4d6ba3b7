import { createLogger } from '@tollgate/kit/logger';
import { startPostgres, type TestDatabase, type TestPostgres } from '@tollgate/testkit/postgres';
import t from 'tap';
import { migrate } from '../../src/db/migrate.ts';

const silent = createLogger({ level: 'fatal', format: 'json' });
let server: Promise<TestPostgres> | undefined;

/**
 * A migrated database, which is dropped when the test ends. The server is started once per file.
 */
export async function testDatabase(test: Pick<typeof t, 'teardown'>): Promise<TestDatabase> {
  server ??= startServer();
  const database = await (await server).createDatabaseFrom('auth', async (databaseUrl) => {
    await migrate({ databaseUrl, dbNamespace: 'auth' }, { logger: silent });
  });
  test.teardown(() => database.drop());
  return database;
}

/** An empty database, which is dropped when the test ends. */
export async function emptyDatabase(test: Pick<typeof t, 'teardown'>): Promise<TestDatabase> {
  server ??= startServer();
  const database = await (await server).createDatabase();
  test.teardown(() => database.drop());
  return database;
}

async function startServer(): Promise<TestPostgres> {
  const started = await startPostgres();
  t.teardown(() => started.stop());
  return started;
}
