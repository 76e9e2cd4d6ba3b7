import type { ParameterOrJSON, Sql, TransactionSql } from 'postgres';

/** A pool, or the connection of a transaction. */
export type Queryable = Sql | TransactionSql;

/** A row as the database answers it: nobody has looked at it yet. */
export type Row = Readonly<Record<string, unknown>>;

/** What a statement takes: text, numbers, booleans, dates, `null`, lists of them, and objects for JSON. */
export type Parameter = unknown;

/**
 * Runs a statement and answers its rows. `text` is a constant of the program, never made from what a caller sent: values go into
 * `parameters`. Constants, unlike tagged templates with parts, cost nothing to put together at each call, and each is prepared once
 * per connection.
 */
export async function query(
  sql: Queryable,
  text: string,
  parameters: readonly Parameter[],
): Promise<readonly Row[]> {
  // Parsed boundary: the library's type does not know that the server tells it the types of parameters.
  return await sql.unsafe(text, parameters as ParameterOrJSON<never>[], { prepare: true });
}
