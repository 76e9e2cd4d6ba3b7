import { maxBatchRows } from './connection.ts';
import type { SqlType } from './sql-types.ts';
import { type Fragment, fragment, join, Parameter, raw } from './statement.ts';

/** A column of a batch: what it takes from each item of type `T`. */
interface BatchColumn<in T> {
  readonly type: SqlType<unknown>;
  readonly read: (item: T) => unknown;
}

export function column<T, V>(type: SqlType<V>, read: (item: T) => V): BatchColumn<T> {
  return { type, read };
}

/**
 * A `from` item with the rows of a batch: `i`, with these columns and `position`. Each column is an
 * array parameter. The condition makes the planner expect a single row, so that it keeps one plan
 * for all sizes. That plan may have been made while the tables were small; joins by
 * `lateral (… offset 0)` look up each row by index even then.
 */
export function batchedInput<T>(
  columns: Readonly<Record<string, BatchColumn<T>>>,
): Fragment<{ readonly items: readonly T[] }> {
  const arrays = Object.values(columns).map(({ type: { list }, read }) => {
    const values = new Parameter(list, ({ items }: { readonly items: readonly T[] }) =>
      items.map((item) => toElement(read(item))),
    );
    return fragment`${values}::${raw(list.name)}`;
  });
  return fragment`(select * from unnest(${join(arrays, ', ')}) with ordinality
    as b(${raw(Object.keys(columns).join(', '))}, position) where position between 1 and ${raw(maxBatchRows)}) i`;
}

/** The driver derives the type of an array from its first element, which may be null. */
function toElement(value: unknown): unknown {
  return value instanceof Date ? value.toISOString() : value;
}

// GoTrue cannot read rows with null in one of these columns.

/** Value of `instance_id` columns. */
export const noInstance = raw(`'00000000-0000-0000-0000-000000000000'::uuid`);

/** A JSON column as an object; any other value, also JSON `null`, counts as an empty one. */
export function jsonObject(name: string): Fragment<unknown> {
  return raw(`case jsonb_typeof(${name}) when 'object' then ${name} else '{}' end`);
}

/** Columns of a new user that are empty strings. */
const emptyUserColumns = [
  'confirmation_token',
  'recovery_token',
  'email_change_token_new',
  'email_change_token_current',
  'email_change',
  'phone_change',
  'phone_change_token',
  'reauthentication_token',
];
export const emptyUserColumnNames = raw(emptyUserColumns.join(', '));
export const emptyUserColumnValues = raw(emptyUserColumns.map(() => "''").join(', '));

/** The id of a new row of `refresh_tokens`. */
export const nextRefreshTokenId = raw(`nextval('refresh_tokens_id_seq')`);

/**
 * Part of a statement that deletes rows (sessions, factors, tokens) of a user. The other parts read
 * the id from it, so they start once the user row is locked: otherwise two such statements could
 * deadlock. Sign-ins and refreshes delete nothing and do not wait.
 */
export function lockOwner<V>(userId: Parameter<V>): Fragment<V> {
  return fragment`select id from users where id = ${userId} for no key update`;
}
