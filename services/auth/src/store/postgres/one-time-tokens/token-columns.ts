import type { OneTimeTokenType } from '../../../ports/one-time-token-store.ts';

/**
 * GoTrue also keeps the token of a type in the column of `users` with the name of the type, before
 * April 2024 only there. The column `sentAt` says when it was sent, and `relatesTo` where to.
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

/**
 * Rows of tokens of the types in `$2` with the hash `h.hash`. All columns but that of phones have a
 * unique index. Comparing with one hash at a time has it used in generic plans, too.
 */
const tokensInColumns = tokenTypes
  .filter((type) => type !== 'phone_change_token')
  .map(
    (type) => `
      select id as user_id, '${type}' as token_type, ${type} as token_hash, ${tokenColumns[type].relatesTo} as relates_to,
        ${tokenColumns[type].sentAt} as sent_at
      from users
      where '${type}' = any($2::text[]) and ${type} = h.hash and ${type} !~ '^[0-9 ]*$'`,
  )
  .join(' union all ');

/** Finds a token with one of the hashes in `$1`. `columns` are selected of its user `u`. */
export function findInColumns(columns: string): string {
  return `select ${columns}, t.token_type, t.token_hash, t.relates_to, t.sent_at
    from unnest($1::text[]) as h(hash) cross join lateral (${tokensInColumns}) t
      cross join lateral (select * from users where id = t.user_id and deleted_at is null offset 0) u
    where t.sent_at is not null limit 1`;
}
