import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { compareText } from '@tollgate/kit/compare-text';
import { escapeIdentifier } from 'pg';

/** Runs a statement and answers its rows. */
export type ReadRows = (
  text: string,
  values?: readonly unknown[],
) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** Holds the names of the migrations that have run. */
export const migrationsTable = 'tollgate_migrations';
/** Its files run in the order of their names. */
export const migrationsFolder = join(import.meta.dirname, '../migrations');

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
