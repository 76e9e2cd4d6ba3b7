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

/** @see https://www.postgresql.org/docs/18/errcodes-appendix.html */
const uniqueViolation = '23505';

/** Did a statement fail because something that must be unique is there already? */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === uniqueViolation;
}

/** The pattern of `like` for whatever has that text in it; `%` and `_` in it stand for themselves. */
export function containing(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
}

// GoTrue cannot read rows with a null in one of these columns.

/** Value of all columns `instance_id`. */
export const noInstance = `'00000000-0000-0000-0000-000000000000'::uuid`;

/** Columns of a new user that are empty. */
export const emptyUserColumns = [
  'confirmation_token',
  'recovery_token',
  'email_change_token_new',
  'email_change_token_current',
  'email_change',
  'phone_change',
  'phone_change_token',
  'reauthentication_token',
] as const;

/** The id of a new row of `refresh_tokens`. */
export const nextRefreshTokenId = `nextval('refresh_tokens_id_seq')`;
