import type { OneTimeTokenType } from '../../../ports/one-time-token-store.ts';

/**
 * GoTrue keeps the token of a type also in the column of the user that has the name of the type: before April 2024 only there. The
 * column `sentAt` says when it was sent, and `relatesTo` where to.
 */
export const tokenColumns: Readonly<
  Record<OneTimeTokenType, { readonly sentAt: string; readonly relatesTo: string }>
> = {
  confirmation_token: { sentAt: 'confirmation_sent_at', relatesTo: 'coalesce(email, phone)' },
  recovery_token: { sentAt: 'recovery_sent_at', relatesTo: 'coalesce(email, phone)' },
  email_change_token_new: { sentAt: 'email_change_sent_at', relatesTo: 'email_change' },
  email_change_token_current: { sentAt: 'email_change_sent_at', relatesTo: 'email' },
  phone_change_token: { sentAt: 'phone_change_sent_at', relatesTo: 'phone_change' },
  reauthentication_token: { sentAt: 'reauthentication_sent_at', relatesTo: 'coalesce(email, phone)' },
};

/** Types, which are the names of columns as well. */
export const tokenTypes = Object.keys(tokenColumns) as readonly OneTimeTokenType[]; // of the constant just above

/** Assigns to the column of each type what `value` makes of it. */
export function setTokenColumns(value: (type: OneTimeTokenType) => string): string {
  return tokenTypes.map((type) => `${type} = ${value(type)}`).join(', ');
}

/** Empties all of them. */
export const emptyTokenColumns = setTokenColumns(() => "''");

/** Rows of tokens in the columns of users: those in the list `$1` of the types in `$2`. Each part has a unique index but that of phones. */
const tokensInColumns = tokenTypes
  .filter((type) => type !== 'phone_change_token')
  .map(
    (type) => `
      select id as user_id, '${type}' as token_type, ${type} as token_hash, ${tokenColumns[type].relatesTo} as relates_to,
        ${tokenColumns[type].sentAt} as sent_at
      from users
      where '${type}' = any($2::text[]) and ${type} = any($1::text[]) and ${type} !~ '^[0-9 ]*$'`,
  )
  .join(' union all ');

/** A statement that finds a token that only a column of its user has. `columns` are those to be answered of the user `u`. */
export function findInColumns(columns: string): string {
  return `select ${columns}, t.token_type, t.token_hash, t.relates_to, t.sent_at
    from (${tokensInColumns}) t join users u on u.id = t.user_id
    where u.deleted_at is null and t.sent_at is not null limit 1`;
}
