import type { Sql } from 'postgres';
import postgres from 'postgres';
import { type ColumnCondition, conditionsOf, gotrueTables, type HashStorage } from './row-rules.ts';

/**
 * Columns with a row that GoTrue cannot read, in any schema that Tollgate has migrated: GoTrue
 * would answer 500 to requests that read the row, or not find it.
 */
export async function findUnreadableRows(databaseUrl: string, storage: HashStorage): Promise<string[]> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => undefined });
  try {
    return await findBrokenConditions(sql, storage);
  } finally {
    await sql.end();
  }
}

async function findBrokenConditions(sql: Sql, storage: HashStorage): Promise<string[]> {
  // Most tests write a few of the tables, and planning the conditions of all costs 30 ms.
  const written = (await listConditions(sql, storage)).filter(({ hasPages }) => hasPages);
  const tables = Object.groupBy(written, ({ from }) => from);
  const queries = Object.entries(tables).map(([from, conditions = []]) => {
    const broken = conditions.map(
      ({ name, condition }) => `case when bool_or(not (${condition})) then '${name}' end`,
    );
    return `select unnest(array[${broken.join()}]) as name from ${from}`;
  });
  if (queries.length === 0) return [];
  const rows = await sql.unsafe(queries.join(' union '));
  return rows.flatMap(({ name }) => (name === null ? [] : [String(name)])).toSorted();
}

interface TableCondition extends ColumnCondition {
  /** The table with its schema. */
  readonly from: string;
  /** Table and column. */
  readonly name: string;
  /** False for a table without a row since it was made. */
  readonly hasPages: boolean;
}

/** The conditions of all columns that GoTrue reads. */
export async function listConditions(sql: Sql, storage: HashStorage): Promise<readonly TableCondition[]> {
  const columns = await sql`
    select format('%I.%I', n.nspname, c.relname) as from, c.relname || '.' || a.attname as name,
      format_type(a.atttypid, a.atttypmod) as type, pg_relation_size(c.oid) > 0 as pages
    from pg_class m join pg_namespace n on n.oid = m.relnamespace
      join pg_class c on c.relnamespace = n.oid and c.relkind = 'r' join pg_attribute a on a.attrelid = c.oid
    where m.relname = 'tollgate_migrations' and c.relname = any(${gotrueTables}) and a.attnum > 0 and not a.attisdropped`;
  return columns.flatMap(({ from, name, type, pages }) =>
    conditionsOf(String(name), String(type), storage).map((condition) => ({
      ...condition,
      from: String(from),
      name: String(name),
      hasPages: pages === true,
    })),
  );
}
