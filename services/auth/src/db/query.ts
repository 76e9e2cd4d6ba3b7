import type { ParameterOrJSON, Sql, TransactionSql } from 'postgres';

/** A pool, or the connection of a transaction. */
export type Queryable = Sql | TransactionSql;

/** A row, not validated. */
export type Row = Readonly<Record<string, unknown>>;

/** Text, number, boolean, date, `null`, a list of them, or an object for JSON. */
export type Parameter = unknown;

/**
 * Runs a statement. `text` must be a constant, which is prepared once per connection; values go
 * into `parameters`.
 */
export async function query(
  sql: Queryable,
  text: string,
  parameters: readonly Parameter[],
): Promise<readonly Row[]> {
  // Parsed boundary: the server, not the library's type, determines the types of parameters.
  return await sql.unsafe(text, parameters as ParameterOrJSON<never>[], { prepare: true });
}

/** @see https://www.postgresql.org/docs/18/errcodes-appendix.html */
const uniqueViolation = '23505';

export function isUniqueViolation(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === uniqueViolation;
}

/** A `like` pattern for a substring. */
export function containing(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
}

// GoTrue cannot read rows with null in one of these columns.

/** Value of `instance_id` columns. */
export const noInstance = `'00000000-0000-0000-0000-000000000000'::uuid`;

/** Columns of a new user that are empty strings. */
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
