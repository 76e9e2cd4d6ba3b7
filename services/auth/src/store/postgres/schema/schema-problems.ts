import type { Columns } from './used-columns.ts';

/** What is wrong with a schema, for those who use it. */
export interface SchemaProblems {
  /** Tables without any column that is used. */
  readonly missingTables: readonly string[];
  /** `table.column`, of tables that are there. */
  readonly missingColumns: readonly string[];
  /** `table.column`: values that are required, that have no default, and that nothing here writes. */
  readonly unknownColumns: readonly string[];
}

/** Takes {@link schemaProblemsParameters}; {@link schemaProblemsOf} reads its rows. */
export const schemaProblemsQuery = `
  with used as (
    select t.key as table_name, c.column_name
    from json_each($1::text::json) t, json_array_elements_text(t.value) c(column_name)
  ), present as (
    select c.relname as table_name, a.attname as column_name,
      a.attnotnull and not a.atthasdef and a.attidentity = '' as required
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = (select oid from pg_namespace where nspname = coalesce($2::text, current_schema()))
      and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
      and c.relname in (select table_name from used)
  )
  select distinct 'table' as problem, table_name as name from used where table_name not in (select table_name from present)
  union all
  select 'column', table_name || '.' || column_name from used
    where table_name in (select table_name from present)
      and (table_name, column_name) not in (select table_name, column_name from present)
  union all
  select 'unknown', table_name || '.' || column_name from present
    where required and (table_name, column_name) not in (select table_name, column_name from used)
  order by 1, 2`;

/** The parameters of {@link schemaProblemsQuery}; without a schema, that of the connection. */
export function schemaProblemsParameters(columns: Columns, schema?: string): unknown[] {
  return [JSON.stringify(columns), schema ?? null];
}

/** Reads the rows of {@link schemaProblemsQuery}. */
export function schemaProblemsOf(rows: readonly Readonly<Record<string, unknown>>[]): SchemaProblems {
  const named = (problem: string): string[] =>
    rows.filter((row) => row.problem === problem).map(({ name }) => String(name));
  return { missingTables: named('table'), missingColumns: named('column'), unknownColumns: named('unknown') };
}

/** What to say of problems; undefined where there are none. */
export function describeProblems({
  missingTables,
  missingColumns,
  unknownColumns,
}: SchemaProblems): string | undefined {
  const missing = [...missingTables, ...missingColumns];
  const parts = [
    ...(missing.length > 0 ? [`lacks ${missing.join(', ')}`] : []),
    ...(unknownColumns.length > 0 ? [`requires values for ${unknownColumns.join(', ')}`] : []),
  ];
  return parts.length === 0 ? undefined : parts.join(' and ');
}

/** What to say of a schema of GoTrue that lacks columns which it had in March 2024. */
export function describeTooOld(missingColumns: readonly string[]): string {
  return `too old: it lacks ${missingColumns.join(', ')}. The oldest that works is that of GoTrue in March 2024 (its migration 20240314092811). Run a newer GoTrue on it once, which migrates it; or name another schema in DB_NAMESPACE if this one is not of GoTrue`;
}

/** Whether the migrations add columns to sessions, which GoTrue of before October 2025 cannot read any more then. */
export function widensSessions({ missingColumns }: SchemaProblems): boolean {
  return missingColumns.includes('sessions.refresh_token_hmac_key');
}
