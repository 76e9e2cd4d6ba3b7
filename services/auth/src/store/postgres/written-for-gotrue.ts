// GoTrue reads these columns as text or an id that is there, and fails where one is null.

/** Id of the one instance, which all rows that have such a column name. */
export const noInstance = `'00000000-0000-0000-0000-000000000000'::uuid`;

/** Columns of a user that are empty rather than null. */
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
