import { createLogger } from '@tollgate/kit/logger';
import { startPostgres, type TestDatabase, type TestPostgres } from '@tollgate/testkit/postgres';
import t from 'tap';
import { migrate } from '../../src/db/migrate.ts';
import { findUnreadableRows } from './readable-rows.ts';
import type { HashStorage } from './row-rules.ts';
import { watchRows } from './value-types.ts';

const silent = createLogger({ level: 'fatal', format: 'json' });
let server: Promise<TestPostgres> | undefined;
/** Problems found after all tests of the file. */
const unreadable: string[] = [];
const wrongValues = watchRows();
/** URLs of databases. */
const unchecked = new Set<string>();
const shared = new Set<string>();

/**
 * A migrated database, which is dropped when the test ends. The server is started once per file.
 */
export async function testDatabase(test: Pick<typeof t, 'teardown' | 'name'>): Promise<TestDatabase> {
  server ??= startServer();
  const database = await (await server).createDatabaseFrom('auth', async (databaseUrl) => {
    await migrate({ databaseUrl, dbNamespace: 'auth' }, { logger: silent });
  });
  test.teardown(() => close(database, test, 'own'));
  return database;
}

/**
 * An empty database, which is dropped when the test ends. The test may write rows of GoTrue or of
 * an earlier version into it.
 */
export async function emptyDatabase(test: Pick<typeof t, 'teardown' | 'name'>): Promise<TestDatabase> {
  server ??= startServer();
  const database = await (await server).createDatabase();
  test.teardown(() => close(database, test, 'mixed'));
  return database;
}

/** For a test that inserts rows of its own with few columns, which GoTrue could not read. */
export function allowUnreadableRows(databaseUrl: string): void {
  unchecked.add(databaseUrl);
}

/** For servers with `DB_SHARED_WITH_GOTRUE`: hashes must be those of GoTrue. */
export function requireGotrueHashes(databaseUrl: string): void {
  shared.add(databaseUrl);
}

/** Checks the rows that a test has left, then drops its database. */
async function close(
  database: TestDatabase,
  test: Pick<typeof t, 'name'>,
  unshared: HashStorage,
): Promise<void> {
  const storage = shared.has(database.url) ? 'shared' : unshared;
  const broken = unchecked.has(database.url) ? [] : await findUnreadableRows(database.url, storage);
  unreadable.push(...broken.map((name) => `${name} after "${test.name}"`));
  await database.drop();
}

async function startServer(): Promise<TestPostgres> {
  const started = await startPostgres();
  t.teardown(async () => {
    await started.stop();
    // An error in the teardown of one test would keep the server from being stopped.
    if (unreadable.length > 0) throw new Error(`GoTrue cannot read ${unreadable.join(', ')}`);
    if (wrongValues.size > 0) throw new Error([...wrongValues].join('\n'));
  });
  return started;
}
