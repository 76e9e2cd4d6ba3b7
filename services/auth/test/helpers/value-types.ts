import type { SqlType } from '../../src/db/sql-types.ts';
import { type ReceivedRows, rowsChannel } from '../../src/db/statement.ts';

/** JavaScript types that the driver returns for types of PostgreSQL. The others are strings. */
const valueTypes: Readonly<Record<string, string>> = {
  boolean: 'boolean',
  smallint: 'number',
  integer: 'number',
  'double precision': 'number',
  'timestamp without time zone': 'Date',
  'timestamp with time zone': 'Date',
  timestamptz: 'Date',
  json: 'json',
  jsonb: 'json',
  bytea: 'Buffer',
};

export function valueType(name: string): string {
  return name.endsWith('[]') ? `${valueType(name.slice(0, -2))}[]` : (valueTypes[name] ?? 'string');
}

function hasType(value: unknown, type: string): boolean {
  if (type.endsWith('[]'))
    return Array.isArray(value) && value.every((item) => hasType(item, type.slice(0, -2)));
  if (type === 'Date') return value instanceof Date;
  if (type === 'Buffer') return Buffer.isBuffer(value);
  return type === 'json' || typeof value === type;
}

/** Where a row of a statement differs from the columns that the statement declares. */
export function findWrongValues({ statement, rows }: ReceivedRows): string[] {
  const { columns, outerColumns, text } = statement;
  return rows.flatMap((row) => {
    const joined = outerColumns.filter((group) => Object.keys(group).some((name) => row[name] !== null));
    return [columns, ...joined]
      .flatMap(Object.entries<SqlType<unknown>>)
      .filter(([name, { name: type, nulls }]) =>
        row[name] === null ? nulls !== 'allowed' : !hasType(row[name], valueType(type)),
      )
      .map(
        ([name]) =>
          `${name} is ${typeof row[name]} ${row[name]}, not as declared: ${text.trim().slice(0, 100)}`,
      );
  });
}

/** Collects wrong values of all statements from now on. */
export function watchRows(): ReadonlySet<string> {
  const wrong = new Set<string>();
  rowsChannel.subscribe((message) => {
    // Only such objects are published.
    for (const value of findWrongValues(message as ReceivedRows)) wrong.add(value);
  });
  return wrong;
}
