/** An action as the audit log has it. */
interface AuditedAction {
  /** The value of `log_type`. */
  readonly type:
    | 'account'
    | 'team'
    | 'user'
    | 'token'
    | 'factor'
    | 'provider'
    | 'client'
    | 'webhook'
    | 'organization'
    | 'api_key';
  /** The event that the entry is. Changes of rows have events of their own, {@link rowEvents}. */
  readonly event?: string;
}

/** Every action of the audit log, and which of them is an event for webhooks. */
export const auditActions = {
  login: { type: 'account' },
  logout: { type: 'account' },
  invite_accepted: { type: 'account' },
  user_signedup: { type: 'team' },
  user_invited: { type: 'team' },
  user_deleted: { type: 'team' },
  user_modified: { type: 'user' },
  user_recovery_requested: { type: 'user' },
  user_reauthenticate_requested: { type: 'user' },
  user_confirmation_requested: { type: 'user' },
  user_repeated_signup: { type: 'user' },
  user_updated_password: { type: 'user' },
  identity_unlinked: { type: 'user' },
  passkey_created: { type: 'user' },
  passkey_updated: { type: 'user' },
  passkey_deleted: { type: 'user' },
  token_revoked: { type: 'token' },
  token_refreshed: { type: 'token' },
  generate_recovery_codes: { type: 'user' },
  factor_in_progress: { type: 'factor' },
  factor_unenrolled: { type: 'factor' },
  challenge_created: { type: 'factor' },
  verification_attempted: { type: 'factor' },
  factor_deleted: { type: 'factor' },
  factor_updated: { type: 'factor' },
  recovery_codes_generated: { type: 'factor' },
  recovery_codes_regenerated: { type: 'factor' },
  recovery_codes_verified: { type: 'factor' },
  recovery_codes_deleted: { type: 'factor' },
  mfa_code_login: { type: 'factor' },
  // Not in GoTrue.
  login_failed: { type: 'account', event: 'user.sign_in_failed' },
  identity_linked: { type: 'user' },
  user_data_exported: { type: 'user' },
  users_imported: { type: 'team', event: 'users.imported' },
  custom_provider_created: { type: 'provider', event: 'provider.created' },
  custom_provider_updated: { type: 'provider', event: 'provider.updated' },
  custom_provider_deleted: { type: 'provider', event: 'provider.deleted' },
  custom_provider_checked: { type: 'provider' },
  oauth_client_created: { type: 'client', event: 'client.created' },
  oauth_client_updated: { type: 'client', event: 'client.updated' },
  oauth_client_deleted: { type: 'client', event: 'client.deleted' },
  oauth_client_secret_regenerated: { type: 'client', event: 'client.secret_regenerated' },
  token_exchanged: { type: 'token' },
  oauth_grant_approved: { type: 'token', event: 'oauth_grant.approved' },
  oauth_grant_denied: { type: 'token' },
  oauth_grant_revoked: { type: 'token', event: 'oauth_grant.revoked' },
  admin_request_denied: { type: 'token' },
  webhook_created: { type: 'webhook' },
  webhook_updated: { type: 'webhook' },
  webhook_deleted: { type: 'webhook' },
  webhook_secret_rotated: { type: 'webhook' },
  webhook_tested: { type: 'webhook' },
  event_redelivered: { type: 'webhook' },
  organization_created: { type: 'organization', event: 'organization.created' },
  organization_modified: { type: 'organization', event: 'organization.updated' },
  organization_deleted: { type: 'organization', event: 'organization.deleted' },
  organization_member_invited: { type: 'organization', event: 'organization.member_invited' },
  organization_invitation_revoked: { type: 'organization', event: 'organization.invitation_revoked' },
  organization_domain_added: { type: 'organization', event: 'organization.domain_added' },
  organization_domain_verified: { type: 'organization', event: 'organization.domain_verified' },
  organization_domain_removed: { type: 'organization', event: 'organization.domain_removed' },
  organization_member_added: { type: 'organization', event: 'organization.member_added' },
  organization_member_modified: { type: 'organization', event: 'organization.member_updated' },
  organization_member_removed: { type: 'organization', event: 'organization.member_removed' },
  api_key_created: { type: 'api_key', event: 'api_key.created' },
  api_key_updated: { type: 'api_key', event: 'api_key.updated' },
  api_keys_imported: { type: 'api_key', event: 'api_keys.imported' },
  api_key_rotated: { type: 'api_key', event: 'api_key.rotated' },
  api_key_revoked: { type: 'api_key', event: 'api_key.revoked' },
} as const satisfies Readonly<Record<string, AuditedAction>>;

export type AuditAction = keyof typeof auditActions;

/** Events that triggers write for changed rows, whichever statement changes them. */
const rowEvents = [
  'user.created',
  'user.updated',
  'user.deleted',
  'password.changed',
  'user.signed_in',
  'session.revoked',
  'factor.enrolled',
  'factor.verified',
  'factor.removed',
  'passkey.registered',
  'passkey.removed',
  'identity.linked',
  'identity.unlinked',
] as const;

/** All types of events. */
export const eventTypes: readonly string[] = [
  ...rowEvents,
  ...Object.values<AuditedAction>(auditActions).flatMap(({ event }) => event ?? []),
];

/** Members of the payload that the action determines. */
export function describeAction(action: AuditAction): {
  readonly action: AuditAction;
  readonly log_type: AuditedAction['type'];
  readonly event?: string;
} {
  const { type, event }: AuditedAction = auditActions[action];
  return { action, log_type: type, ...(event !== undefined && { event }) };
}
