import type { Sql } from 'postgres';
import postgres from 'postgres';
import neverNull from '../gotrue-schema/never-null.json' with { type: 'json' };

/** A condition that rows of a table must meet; `column` is only what a failure names. */
interface RowRule {
  readonly table: string;
  readonly column: string;
  readonly condition: string;
}

const noNulls: readonly RowRule[] = Object.entries(neverNull.columns).flatMap(([table, columns]) =>
  columns.map((column) => ({ table, column, condition: `${column} is not null` })),
);

const rules: readonly RowRule[] = noNulls;

/**
 * Columns with a row that GoTrue cannot read, in any schema that Tollgate has migrated: GoTrue
 * would answer 500 to requests that read the row.
 */
export async function findUnreadableRows(databaseUrl: string): Promise<string[]> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => undefined });
  try {
    return await findBrokenRules(sql);
  } finally {
    await sql.end();
  }
}

async function findBrokenRules(sql: Sql): Promise<string[]> {
  const columns = await sql`
    select format('%I', n.nspname) as schema, c.relname || '.' || a.attname as name
    from pg_class m join pg_namespace n on n.oid = m.relnamespace
      join pg_class c on c.relnamespace = n.oid and c.relkind = 'r' join pg_attribute a on a.attrelid = c.oid
    where m.relname = 'tollgate_migrations' and a.attnum > 0 and not a.attisdropped`;
  const queries = columns.flatMap(({ schema, name }) =>
    rules
      .filter(({ table, column }) => name === `${table}.${column}`)
      .map(
        ({ table, condition }) =>
          `select '${name}' as name where exists (select from ${schema}.${table} where not (${condition}))`,
      ),
  );
  if (queries.length === 0) return [];
  return (await sql.unsafe(queries.join(' union all '))).map(({ name }) => String(name));
}
