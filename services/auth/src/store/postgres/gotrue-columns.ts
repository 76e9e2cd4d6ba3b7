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
