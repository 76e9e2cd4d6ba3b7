/** Runs a statement. */
export type ReadRows = (
  text: string,
  values?: readonly unknown[],
) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** Column names by table. */
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

/** Columns of GoTrue's tables since March 2024. */
const gotrueColumns = {
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

/** Whether `table.column` is a column of GoTrue. */
export function isGotrueColumn(name: string): boolean {
  return Object.entries<readonly string[]>(gotrueColumns).some(([table, columns]) =>
    columns.some((column) => name === `${table}.${column}`),
  );
}

/** Columns that requests use, which exist after the migrations. */
export const usedColumns: Columns = {
  ...gotrueColumns,
  sessions: [...sessionColumns, 'refresh_token_hmac_key', 'refresh_token_counter'],
  mfa_factors: [
    ...factorColumns,
    ...['phone', 'last_challenged_at', 'web_authn_credential', 'web_authn_aaguid'],
  ],
  mfa_challenges: [...challengeColumns, 'otp_code', 'web_authn_session_data'],
  webauthn_credentials: [
    ...[
      'id',
      'user_id',
      'credential_id',
      'public_key',
      'attestation_type',
      'aaguid',
      'sign_count',
      'transports',
    ],
    ...['backup_eligible', 'backed_up', 'friendly_name', 'created_at', 'updated_at', 'last_used_at'],
  ],
  webauthn_challenges: ['id', 'user_id', 'challenge_type', 'session_data', 'created_at', 'expires_at'],
  mfa_recovery_code_sets: [
    ...['id', 'user_id', 'mfa_factor_id', 'failed_verification_count', 'verification_locked_until'],
    ...['created_at', 'updated_at'],
  ],
  mfa_recovery_codes: ['id', 'mfa_recovery_code_set_id', 'code_hash', 'consumed_at', 'created_at'],
  flow_state: [
    ...gotrueColumns.flow_state,
    ...['invite_token', 'referrer', 'linking_target_id', 'oauth_client_state_id', 'email_optional'],
  ],
  oauth_client_states: ['id', 'provider_type', 'code_verifier', 'created_at'],
  one_time_tokens: ['id', 'user_id', 'token_type', 'token_hash', 'relates_to', 'created_at', 'updated_at'],
  rate_limits: ['limiter', 'key', 'used', 'since'],
  tollgate_totp_periods: ['factor_id', 'period'],
  oauth_client_settings: [
    ...['client_id', 'token_endpoint_auth_method', 'jwks', 'jwks_uri', 'scopes', 'audiences', 'plan', 'role'],
    ...['rate_limit', 'org_id', 'disabled', 'updated_at', 'document_url', 'document_expires_at', 'metadata'],
  ],
  tollgate_events: [
    ...[
      'id',
      'event_id',
      'user_id',
      'type',
      'data',
      'created_at',
      'attempts',
      'next_attempt_at',
      'retry_until',
    ],
    ...['failed_at', 'last_error', 'webhook_id'],
  ],
  tollgate_webhooks: [
    ...['id', 'name', 'url', 'secret', 'previous_secret', 'previous_secret_until', 'event_types', 'disabled'],
    ...['created_at', 'updated_at', 'last_delivered_at', 'last_failed_at', 'last_error'],
  ],
  organizations: [
    ...['id', 'name', 'slug', 'plan', 'rate_limit', 'metadata', 'domain_role', 'created_at', 'updated_at'],
  ],
  organization_members: ['organization_id', 'user_id', 'role', 'created_at', 'updated_at'],
  organization_invitations: [
    ...['id', 'organization_id', 'email', 'role', 'token_hash', 'invited_by', 'created_at', 'expires_at'],
  ],
  organization_domains: ['organization_id', 'domain', 'token', 'verified_at', 'created_at'],
  session_organizations: ['session_id', 'organization_id', 'user_id'],
  oauth_pushed_requests: ['request_uri', 'client_id', 'parameters', 'expires_at'],
  oauth_device_codes: ['request_id', 'device_code', 'user_code', 'expires_at', 'poll_interval', 'polled_at'],
  session_resources: ['session_id', 'resource'],
  browser_sessions: [
    ...['id', 'session_id', 'user_id', 'host', 'binding', 'code', 'code_expires_at', 'digest', 'claims'],
    ...['created_at', 'used_at'],
  ],
  session_keys: ['session_id', 'thumbprint'],
  dpop_proofs: ['digest', 'expires_at'],
  session_authentications: ['session_id', 'authenticated_at', 'aal', 'methods', 'approved_by'],
  oidc_authorizations: [
    ...['request_id', 'prompt', 'max_age', 'response_mode', 'hinted_user_id'],
    ...['dpop_jkt', 'authorization_details', 'authenticated_at', 'aal', 'methods', 'approved_by'],
    'stored_at',
  ],
  oauth_consent_resources: ['consent_id', 'resource', 'scopes', 'authorization_details'],
  session_authorization_details: ['session_id', 'details'],
  api_keys: [
    ...[
      'id',
      'name',
      'prefix',
      'last4',
      'digest',
      'user_id',
      'org_id',
      'scopes',
      'admin_scopes',
      'role',
      'plan',
    ],
    ...['rate_limit', 'expires_at', 'allowed_networks', 'metadata', 'disabled', 'created_at', 'updated_at'],
    ...['last_used_at', 'rotated_from', 'created_by', 'by_member'],
  ],
};

export interface SchemaProblems {
  /** Tables that do not exist. */
  readonly missingTables: readonly string[];
  /** `table.column` of existing tables. */
  readonly missingColumns: readonly string[];
  /** `table.column`: required columns without a default that this service does not write. */
  readonly unknownColumns: readonly string[];
}

/**
 * Its parameters are {@link schemaProblemsParameters}, its rows are parsed by {@link
 * toSchemaProblems}.
 */
export const schemaProblemsQuery = `
  with used as (
    select t.key as table_name, c.column_name
    from json_each($1::text::json) t, json_array_elements_text(t.value) c(column_name)
  ), present as (
    select c.relname as table_name, a.attname as column_name,
      a.attnotnull and not a.atthasdef and a.attidentity = '' as required
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = (select oid from pg_namespace where nspname = coalesce($2::text, current_schema()))
      and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
      and c.relname in (select table_name from used)
  )
  select distinct 'table' as problem, table_name as name from used where table_name not in (select table_name from present)
  union all
  select 'column', table_name || '.' || column_name from used
    where table_name in (select table_name from present)
      and (table_name, column_name) not in (select table_name, column_name from present)
  union all
  select 'unknown', table_name || '.' || column_name from present
    where required and (table_name, column_name) not in (select table_name, column_name from used)
  order by 1, 2`;

/** `schema` defaults to that of the connection. */
export function schemaProblemsParameters(columns: Columns, schema?: string): unknown[] {
  return [JSON.stringify(columns), schema ?? null];
}

export function toSchemaProblems(rows: readonly Readonly<Record<string, unknown>>[]): SchemaProblems {
  const getNames = (problem: string): string[] =>
    rows.filter((row) => row.problem === problem).map(({ name }) => String(name));
  return {
    missingTables: getNames('table'),
    missingColumns: getNames('column'),
    unknownColumns: getNames('unknown'),
  };
}

/** Undefined if there are no problems. */
export function describeProblems({
  missingTables,
  missingColumns,
  unknownColumns,
}: SchemaProblems): string | undefined {
  const missing = [...missingTables, ...missingColumns];
  const parts = [
    ...(missing.length > 0 ? [`lacks ${missing.join(', ')}`] : []),
    ...(unknownColumns.length > 0 ? [`requires values for ${unknownColumns.join(', ')}`] : []),
  ];
  return parts.length === 0 ? undefined : parts.join(' and ');
}

/** The OAuth server needs it. Older versions of GoTrue could not read the table with it. */
export const oauthServerColumns: Columns = { oauth_clients: ['token_endpoint_auth_method'] };

export const noOAuthServer =
  'the OAuth server needs the table oauth_clients of GoTrue since December 2025: run a newer version of GoTrue once to migrate the schema';

export function describeTooOld(missingColumns: readonly string[]): string {
  return `too old: it lacks ${missingColumns.join(', ')}. The oldest supported schema is that of GoTrue from March 2024 (migration 20240314092811). Run a newer version of GoTrue once to migrate it, or set DB_NAMESPACE to another schema if this one is not GoTrue's`;
}

/** Whether the migrations add columns to sessions, which GoTrue before October 2025 cannot read. */
export function widensSessions({ missingColumns }: SchemaProblems): boolean {
  return missingColumns.includes('sessions.refresh_token_hmac_key');
}
