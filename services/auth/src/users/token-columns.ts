import { type Fragment, fragment, join, raw } from '../db/statement.ts';

/** Each user has at most one token of each type. */
export type OneTimeTokenType =
  | 'confirmation_token'
  | 'reauthentication_token'
  | 'recovery_token'
  | 'email_change_token_new'
  | 'email_change_token_current'
  | 'phone_change_token';

/**
 * GoTrue also stores a token in the column of `users` named after its type, and the time when it
 * was sent in these columns. The two tokens of a change of email share one.
 */
export const sentAtColumns: Readonly<Record<OneTimeTokenType, string>> = {
  confirmation_token: 'confirmation_sent_at',
  recovery_token: 'recovery_sent_at',
  email_change_token_new: 'email_change_sent_at',
  email_change_token_current: 'email_change_sent_at',
  phone_change_token: 'phone_change_sent_at',
  reauthentication_token: 'reauthentication_sent_at',
};

/** Types, and names of columns of `users`. */
export const tokenTypes = Object.keys(sentAtColumns) as readonly OneTimeTokenType[]; // of the constant just above

export function setTokenColumns<V>(value: (type: OneTimeTokenType) => Fragment<V>): Fragment<V> {
  return join(
    tokenTypes.map((type) => fragment`${raw(type)} = ${value(type)}`),
    ', ',
  );
}

export const emptyTokenColumns = setTokenColumns(() => raw("''"));
