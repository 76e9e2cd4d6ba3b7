/** Columns, by table. */
export type Columns = Readonly<Record<string, readonly string[]>>;

const factorColumns = [
  'id',
  'user_id',
  'friendly_name',
  'factor_type',
  'status',
  'created_at',
  'updated_at',
  'secret',
];
const challengeColumns = ['id', 'factor_id', 'created_at', 'verified_at', 'ip_address'];
const sessionColumns = [
  ...[
    'id',
    'user_id',
    'created_at',
    'updated_at',
    'factor_id',
    'aal',
    'not_after',
    'refreshed_at',
    'user_agent',
  ],
  ...['ip', 'tag'],
];

/** Required of the tables of GoTrue, which have had all of them since March 2024. */
const columnsOfGotrue = {
  users: [
    ...[
      'id',
      'instance_id',
      'aud',
      'role',
      'email',
      'encrypted_password',
      'email_confirmed_at',
      'invited_at',
    ],
    ...['confirmation_token', 'confirmation_sent_at', 'recovery_token', 'recovery_sent_at'],
    ...['email_change_token_new', 'email_change_token_current', 'email_change', 'email_change_sent_at'],
    ...['email_change_confirm_status', 'last_sign_in_at', 'raw_app_meta_data', 'raw_user_meta_data'],
    ...['is_super_admin', 'created_at', 'updated_at', 'phone', 'phone_confirmed_at', 'phone_change'],
    ...[
      'phone_change_token',
      'phone_change_sent_at',
      'confirmed_at',
      'banned_until',
      'reauthentication_token',
    ],
    ...['reauthentication_sent_at', 'is_sso_user', 'deleted_at', 'is_anonymous'],
  ],
  identities: [
    ...['id', 'provider_id', 'user_id', 'identity_data', 'provider', 'last_sign_in_at', 'created_at'],
    ...['updated_at', 'email'],
  ],
  audit_log_entries: ['id', 'instance_id', 'payload', 'created_at', 'ip_address'],
  sessions: sessionColumns,
  refresh_tokens: [
    ...[
      'id',
      'instance_id',
      'token',
      'user_id',
      'revoked',
      'created_at',
      'updated_at',
      'parent',
      'session_id',
    ],
  ],
  mfa_amr_claims: ['id', 'session_id', 'created_at', 'updated_at', 'authentication_method'],
  mfa_factors: factorColumns,
  mfa_challenges: challengeColumns,
  flow_state: [
    ...['id', 'user_id', 'auth_code', 'code_challenge_method', 'code_challenge', 'provider_type'],
    ...[
      'provider_access_token',
      'provider_refresh_token',
      'created_at',
      'updated_at',
      'authentication_method',
    ],
    ...['auth_code_issued_at'],
  ],
} as const satisfies Columns;

/** Is `table.column` one of those? */
export function isColumnOfGotrue(name: string): boolean {
  return Object.entries<readonly string[]>(columnsOfGotrue).some(([table, columns]) =>
    columns.some((column) => name === `${table}.${column}`),
  );
}

/** What requests read and write, once migrations have added what was missing. */
export const usedColumns: Columns = {
  ...columnsOfGotrue,
  sessions: [...sessionColumns, 'refresh_token_hmac_key', 'refresh_token_counter'],
  mfa_factors: [...factorColumns, 'phone', 'last_challenged_at'],
  mfa_challenges: [...challengeColumns, 'otp_code'],
  one_time_tokens: ['id', 'user_id', 'token_type', 'token_hash', 'relates_to', 'created_at', 'updated_at'],
  rate_limits: ['limiter', 'key', 'used', 'since'],
  tollgate_totp_periods: ['factor_id', 'period'],
};
