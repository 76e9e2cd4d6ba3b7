import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Sql } from 'postgres';
import laterSchema from '../testdata/gotrue-schema/recovery-codes.json' with { type: 'json' };

/** A schema of GoTrue, in the format of `test/testdata/gotrue-schema`. */
export interface GotrueSchema {
  readonly schema_migrations_versions: readonly string[];
  readonly enums: Readonly<Record<string, readonly string[]>>;
  readonly tables: Readonly<Record<string, GotrueTable>>;
}

interface GotrueTable {
  /** Name, type, nullability and default of each. */
  readonly columns: readonly string[];
  /** Statements of indexes that do not belong to a constraint; null for none. */
  readonly indexes: readonly string[] | null;
  /** By name. */
  readonly constraints: Readonly<Record<string, string>>;
}

/** Dates of the files, oldest first. */
export const gotrueSchemaDates = ['2024-03', '2024-10', '2025-10', '2026-06'] as const;
export type GotrueSchemaDate = (typeof gotrueSchemaDates)[number];

const folder = join(import.meta.dirname, '../testdata/gotrue-schema');

export async function readGotrueSchema(date: GotrueSchemaDate): Promise<GotrueSchema> {
  // Parsed boundary: a file of ours.
  return JSON.parse(await readFile(join(folder, `${date}.json`), 'utf8')) as GotrueSchema;
}

/** The schema that migrations make: the latest file, and tables of GoTrue's later migrations. */
export async function readExpectedSchema(): Promise<GotrueSchema> {
  const schema = await readGotrueSchema('2026-06');
  const { factor_type, tables } = laterSchema;
  return {
    ...schema,
    enums: { ...schema.enums, factor_type },
    tables: { ...schema.tables, ...tables },
  };
}

/** Creates a schema `auth` of an early Tollgate version. */
export async function createEarlierSchema(sql: Sql): Promise<void> {
  await sql.unsafe(await readFile(join(folder, 'earlier-tollgate.sql'), 'utf8'));
}

/** Creates a schema `auth` of GoTrue. */
export async function createGotrueSchema(sql: Sql, schema: GotrueSchema): Promise<void> {
  const tables = Object.entries(schema.tables);
  const constraints = tables.flatMap(([table, { constraints }]) =>
    Object.entries(constraints).map(([name, definition]) => ({ table, name, definition })),
  );
  const isForeign = ({ definition }: { definition: string }): boolean => definition.startsWith('FOREIGN KEY');
  const statements = [
    'create schema auth',
    ...Object.entries(schema.enums).map(
      ([name, values]) => `create type auth.${name} as enum (${values.map((value) => `'${value}'`).join()})`,
    ),
    'create sequence auth.refresh_tokens_id_seq',
    ...tables.map(([table, { columns }]) => `create table auth.${table} (${columns.join(', ')})`),
    'alter sequence auth.refresh_tokens_id_seq owned by auth.refresh_tokens.id',
    // A foreign key needs the primary key that it refers to.
    ...[...constraints]
      .sort((a, b) => Number(isForeign(a)) - Number(isForeign(b)))
      .map(
        ({ table, name, definition }) => `alter table auth.${table} add constraint "${name}" ${definition}`,
      ),
    ...tables.flatMap(([, { indexes }]) => indexes ?? []),
    ...schema.schema_migrations_versions.map(
      (version) => `insert into auth.schema_migrations (version) values ('${version}')`,
    ),
  ];
  await sql.unsafe(statements.join(';\n'));
}

/** Reads a schema `auth` from the catalog, in the format of the files, with sorted lists. */
export async function readCatalog(sql: Sql): Promise<GotrueSchema> {
  // Parsed boundary: made of JSON by the statement.
  const [row] = (await sql.unsafe(catalogQuery)) as unknown as readonly { readonly schema: GotrueSchema }[];
  if (row === undefined) throw new Error('no catalog');
  return row.schema;
}

/** Sorts lists without a defined order. */
export function sortedSchema(schema: GotrueSchema): GotrueSchema {
  const tables = Object.entries(schema.tables).map(
    ([name, { columns, indexes, constraints }]) =>
      [name, { columns: columns.toSorted(), indexes: (indexes ?? []).toSorted(), constraints }] as const,
  );
  return { ...schema, tables: Object.fromEntries(tables) };
}

// Where the schema is not in the search path, the catalog names it in all definitions.
const catalogQuery = `
  with columns as (
    select attrelid as id, json_agg(format('%s %s%s%s', attname, format_type(atttypid, atttypmod),
      case when attnotnull then ' not null' else '' end,
      case when attgenerated = 's' then format(' generated always as %s stored',
          case when pg_get_expr(adbin, adrelid) like '(%' then pg_get_expr(adbin, adrelid)
          else '(' || pg_get_expr(adbin, adrelid) || ')' end)
        when adbin is not null then ' default ' || pg_get_expr(adbin, adrelid) else '' end) order by attname) as columns
    from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attnum > 0 and not attisdropped group by attrelid
  ), indexes as (
    select indrelid as id, json_agg(pg_get_indexdef(indexrelid) order by pg_get_indexdef(indexrelid)) as indexes
    from pg_index where not exists (select 1 from pg_constraint where conindid = indexrelid and contype in ('p', 'u'))
    group by indrelid
  ), constraints as (
    select conrelid as id, json_object_agg(conname, pg_get_constraintdef(oid)) as constraints
    from pg_constraint where contype in ('p', 'u', 'f', 'c') group by conrelid
  )
  select json_build_object(
    'schema_migrations_versions', coalesce((select json_agg(version order by version collate "C") from auth.schema_migrations), '[]'),
    'enums', (select json_object_agg(typname, labels) from (
      select typname, json_agg(enumlabel order by enumsortorder) as labels
      from pg_type join pg_enum on enumtypid = pg_type.oid
      where typnamespace = 'auth'::regnamespace group by typname) e),
    'tables', (select json_object_agg(relname, json_build_object(
        'columns', columns, 'indexes', coalesce(indexes, '[]'), 'constraints', coalesce(constraints, '{}')))
      from pg_class left join columns on columns.id = pg_class.oid left join indexes on indexes.id = pg_class.oid
        left join constraints on constraints.id = pg_class.oid
      where relnamespace = 'auth'::regnamespace and relkind = 'r')) as schema`;
