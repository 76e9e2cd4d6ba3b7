import type { OneTimeTokenType } from '../../../ports/one-time-token-store.ts';

/**
 * GoTrue also keeps the token of a type in the column of `users` with the name of the type, and when
 * it was sent in another column. The two tokens of a change of email share that.
 */
export const sentAtColumns: Readonly<Record<OneTimeTokenType, string>> = {
  confirmation_token: 'confirmation_sent_at',
  recovery_token: 'recovery_sent_at',
  email_change_token_new: 'email_change_sent_at',
  email_change_token_current: 'email_change_sent_at',
  phone_change_token: 'phone_change_sent_at',
  reauthentication_token: 'reauthentication_sent_at',
};

/** Types, which are the names of columns as well. */
export const tokenTypes = Object.keys(sentAtColumns) as readonly OneTimeTokenType[]; // of the constant just above

/** Assigns to the column of each type what `value` makes of it. */
export function setTokenColumns(value: (type: OneTimeTokenType) => string): string {
  return tokenTypes.map((type) => `${type} = ${value(type)}`).join(', ');
}

/** Empties all of them. */
export const emptyTokenColumns = setTokenColumns(() => "''");
