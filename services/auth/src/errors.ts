import { AppError, defineErrors, type ErrorDefinition, grpcStatus } from '@tollgate/kit/errors';

const g = grpcStatus;

function define(httpStatus: number, status: ErrorDefinition['grpcStatus'], message: string): ErrorDefinition {
  return { httpStatus, grpcStatus: status, message };
}

/**
 * Errors of the API by their stable code. Codes and messages are those of GoTrue, on which clients
 * depend.
 */
export const errors = defineErrors({
  // The request itself.
  unexpected_failure: define(
    500,
    g.internal,
    'Unexpected failure, please check server logs for more information',
  ),
  bad_json: define(400, g.invalidArgument, 'Could not parse request body as JSON'),
  validation_failed: define(400, g.invalidArgument, 'The request is not valid'),
  not_found: define(404, g.notFound, 'Path not found'),
  method_not_allowed: define(405, g.unimplemented, 'Method not allowed'),
  request_entity_too_large: define(413, g.invalidArgument, 'Request body is too large'),
  request_timeout: define(
    504,
    g.deadlineExceeded,
    'Processing this request timed out, please retry after a moment.',
  ),
  database_unavailable: define(
    503,
    g.unavailable,
    'The database is temporarily unavailable, please retry after a moment.',
  ),
  feature_disabled: define(400, g.failedPrecondition, 'This feature is disabled'),
  conflict: define(409, g.aborted, 'Conflict with another request, please retry'),
  form_rejected: define(
    403,
    g.permissionDenied,
    'The form has expired or belongs to another site. Please try again',
  ),
  over_request_rate_limit: define(429, g.resourceExhausted, 'Request rate limit reached'),
  hash_queue_full: define(
    429,
    g.resourceExhausted,
    'Too many passwords are being checked, please retry after a moment',
  ),

  // Authentication.
  no_authorization: define(401, g.unauthenticated, 'This endpoint requires a valid Bearer token'),
  bad_jwt: define(403, g.unauthenticated, 'invalid JWT: unable to parse or verify signature'),
  not_admin: define(403, g.permissionDenied, 'User not allowed'),
  user_banned: define(403, g.permissionDenied, 'User is banned'),
  insufficient_aal: define(
    401,
    g.permissionDenied,
    'AAL2 session is required to update email, phone or password when MFA is enabled.',
  ),

  // External authorization.
  path_not_canonical: define(400, g.invalidArgument, 'The request path is ambiguous'),
  method_not_upper_case: define(400, g.invalidArgument, 'The request method has lower-case letters'),
  not_http: define(403, g.permissionDenied, 'Only HTTP requests can be authorized'),
  sign_in_required: define(302, g.unauthenticated, 'The browser has to sign in first'),
  signed_in: define(302, g.unauthenticated, 'The browser has signed in'),
  signed_out: define(303, g.unauthenticated, 'The browser has signed out'),
  sign_out_needs_post: define(405, g.unimplemented, 'The sign-out needs POST: its page has a form'),
  sign_in_failed: define(
    400,
    g.invalidArgument,
    'The sign-in has expired, was used before, or began in another browser',
  ),
  cross_site_request: define(
    403,
    g.permissionDenied,
    'The request may be of another site: it needs Sec-Fetch-Site or Origin of its own',
  ),
  route_denied: define(403, g.permissionDenied, 'Access denied'),
  role_not_allowed: define(403, g.permissionDenied, 'The role of the user does not permit this request'),
  anonymous_not_allowed: define(403, g.permissionDenied, 'Anonymous users are not allowed'),
  plan_not_allowed: define(403, g.permissionDenied, 'The plan of the caller does not permit this request'),
  credential_not_allowed: define(403, g.permissionDenied, 'This kind of credential is not allowed'),
  issuer_not_allowed: define(403, g.permissionDenied, 'Tokens of this issuer are not allowed'),
  invalid_dpop_proof: define(401, g.unauthenticated, 'The DPoP proof is not accepted'),
  use_dpop_nonce: define(401, g.unauthenticated, 'The DPoP proof needs a nonce of the server'),
  insufficient_scope: define(403, g.permissionDenied, 'The token does not have the required scope'),
  policy_invalid: define(503, g.unavailable, 'The access policy of this host is invalid'),
  invalid_api_key: define(401, g.unauthenticated, 'The API key is not valid'),
  api_key_disabled: define(401, g.unauthenticated, 'The API key is disabled'),
  api_key_expired: define(401, g.unauthenticated, 'The API key has expired'),
  api_key_network_not_allowed: define(
    403,
    g.permissionDenied,
    'The API key must not be used from this address',
  ),
  several_credentials: define(401, g.unauthenticated, 'The request has more than one credential'),
  issuer_unavailable: define(
    503,
    g.unavailable,
    'The issuer of the token cannot be reached, and its key is not known. Retry later',
  ),
  authorization_unavailable: define(
    503,
    g.unavailable,
    'Authorization is temporarily unavailable, retry later',
  ),
  rate_limit_unavailable: define(
    503,
    g.unavailable,
    'The rate limit service is temporarily unavailable, retry later',
  ),

  // Users.
  user_not_found: define(404, g.notFound, 'User not found'),
  user_already_exists: define(422, g.alreadyExists, 'User already registered'),
  email_exists: define(422, g.alreadyExists, 'A user with this email address has already been registered'),
  phone_exists: define(422, g.alreadyExists, 'A user with this phone number has already been registered'),
  user_sso_managed: define(
    422,
    g.failedPrecondition,
    'Updating email, phone, password of a SSO account only possible via SSO',
  ),

  // Organizations.
  organization_not_found: define(404, g.notFound, 'Organization not found'),
  organization_member_not_found: define(404, g.notFound, 'The organization has no such member'),
  organization_member_exists: define(422, g.alreadyExists, 'The user is a member of the organization'),
  over_member_quota: define(
    422,
    g.resourceExhausted,
    'The organization has the maximum number of members and invitations',
  ),
  organization_domain_exists: define(422, g.alreadyExists, 'An organization has this domain'),
  organization_domain_not_verified: define(
    422,
    g.failedPrecondition,
    'The TXT record that proves the domain was not found',
  ),
  over_domain_quota: define(422, g.resourceExhausted, 'The organization has the maximum number of domains'),
  organization_domain_not_found: define(404, g.notFound, 'The organization does not have this domain'),
  invitation_not_found: define(
    404,
    g.notFound,
    'The invitation has expired, was used or revoked, or does not exist',
  ),
  invitation_email_mismatch: define(
    403,
    g.permissionDenied,
    'The invitation is for another email address, or the address of the user is not confirmed',
  ),
  organization_permission_denied: define(
    403,
    g.permissionDenied,
    'The role in the organization does not permit this',
  ),
  organization_slug_exists: define(422, g.alreadyExists, 'An organization with this slug exists'),
  over_organization_quota: define(
    422,
    g.resourceExhausted,
    'The user has the maximum number of organizations',
  ),
  last_organization_owner: define(
    422,
    g.failedPrecondition,
    'The last owner cannot leave or get another role: make another member an owner first, or delete the organization',
  ),
  // API keys.
  api_key_not_found: define(404, g.notFound, 'API key not found'),
  too_many_api_keys: define(422, g.resourceExhausted, 'Maximum number of API keys reached'),

  // Sign-up and sign-in.
  captcha_failed: define(400, g.failedPrecondition, 'captcha protection: request disallowed'),
  signup_disabled: define(422, g.failedPrecondition, 'Signups not allowed for this instance'),
  otp_disabled: define(422, g.failedPrecondition, 'Signups not allowed for otp'),
  email_provider_disabled: define(422, g.failedPrecondition, 'Email logins are disabled'),
  phone_provider_disabled: define(422, g.failedPrecondition, 'Phone logins are disabled'),
  anonymous_provider_disabled: define(422, g.failedPrecondition, 'Anonymous sign-ins are disabled'),
  provider_email_needs_verification: define(
    422,
    g.failedPrecondition,
    'The email address is not verified by the provider',
  ),
  flow_state_already_used: define(400, g.failedPrecondition, 'State has already been used'),
  bad_oauth_state: define(400, g.invalidArgument, 'OAuth callback with invalid state'),
  bad_oauth_callback: define(400, g.invalidArgument, 'OAuth callback with missing parameters'),
  invite_not_found: define(404, g.notFound, 'Invite not found'),
  identity_not_found: define(422, g.notFound, "Identity doesn't exist"),
  single_identity_not_deletable: define(
    422,
    g.failedPrecondition,
    'User must have at least 1 identity after unlinking',
  ),
  email_conflict_identity_not_deletable: define(
    422,
    g.alreadyExists,
    'Unable to unlink identity due to email conflict',
  ),
  identity_already_exists: define(422, g.alreadyExists, 'Identity is already linked'),
  custom_provider_not_found: define(404, g.notFound, 'Custom OAuth provider not found'),
  over_custom_provider_quota: define(
    400,
    g.resourceExhausted,
    'Maximum number of custom OAuth/OIDC providers reached',
  ),
  provider_disabled: define(400, g.failedPrecondition, 'Provider is not enabled'),
  web3_provider_disabled: define(422, g.failedPrecondition, 'Web3 provider is disabled'),
  web3_unsupported_chain: define(400, g.invalidArgument, 'Unsupported chain'),
  saml_provider_disabled: define(404, g.failedPrecondition, 'SAML 2.0 is disabled'),
  manual_linking_disabled: define(404, g.failedPrecondition, 'Manual linking is disabled'),
  invalid_credentials: define(400, g.unauthenticated, 'Invalid login credentials'),
  email_not_confirmed: define(400, g.failedPrecondition, 'Email not confirmed'),
  phone_not_confirmed: define(400, g.failedPrecondition, 'Phone not confirmed'),

  // Passwords.
  weak_password: define(422, g.invalidArgument, 'Password is too weak'),
  same_password: define(422, g.invalidArgument, 'New password should be different from the old password.'),
  current_password_required: define(
    400,
    g.invalidArgument,
    'Current password required when setting new password',
  ),
  current_password_invalid: define(400, g.invalidArgument, 'Current password is not valid'),
  reauthentication_needed: define(400, g.failedPrecondition, 'Password update requires reauthentication'),
  reauthentication_not_valid: define(422, g.invalidArgument, 'Nonce has expired or is invalid'),

  // Sessions.
  session_not_found: define(403, g.notFound, 'Session from session_id claim in JWT does not exist'),
  session_expired: define(403, g.unauthenticated, 'Session is no longer valid'),
  refresh_token_not_found: define(400, g.notFound, 'Invalid Refresh Token: Refresh Token Not Found'),
  refresh_token_already_used: define(400, g.unauthenticated, 'Invalid Refresh Token: Already Used'),

  // Links, codes and PKCE.
  otp_expired: define(403, g.unauthenticated, 'Token has expired or is invalid'),
  over_email_send_rate_limit: define(429, g.resourceExhausted, 'email rate limit exceeded'),
  over_sms_send_rate_limit: define(429, g.resourceExhausted, 'sms rate limit exceeded'),
  sms_send_failed: define(422, g.unavailable, 'Error sending sms'),
  flow_state_not_found: define(404, g.notFound, 'invalid flow state, no valid flow state found'),
  flow_state_expired: define(422, g.deadlineExceeded, 'invalid flow state, flow state has expired'),
  bad_code_verifier: define(
    400,
    g.invalidArgument,
    'code challenge does not match previously saved code verifier',
  ),

  // Passkeys.
  passkey_disabled: define(404, g.failedPrecondition, 'Passkeys are disabled'),
  too_many_passkeys: define(422, g.resourceExhausted, 'Maximum number of passkeys reached'),
  webauthn_challenge_not_found: define(400, g.notFound, 'Challenge not found or already used'),
  webauthn_challenge_expired: define(400, g.deadlineExceeded, 'Challenge has expired'),
  webauthn_verification_failed: define(400, g.unauthenticated, 'Credential verification failed'),
  webauthn_credential_exists: define(422, g.alreadyExists, 'This credential is already registered'),

  // Clients of the OAuth server.
  oauth_client_not_found: define(404, g.notFound, 'OAuth client not found'),
  oauth_dynamic_client_registration_disabled: define(
    403,
    g.permissionDenied,
    'Dynamic client registration is not enabled',
  ),
  device_code_invalid: define(400, g.invalidArgument, 'The code is not valid, or has expired'),
  oauth_authorization_not_found: define(404, g.notFound, 'authorization not found'),
  oauth_consent_not_found: define(404, g.notFound, 'No active grant found for this client'),

  // Second factors.
  mfa_factor_not_found: define(404, g.notFound, 'Factor not found'),
  mfa_factor_name_conflict: define(
    422,
    g.alreadyExists,
    'A factor with this friendly name exists already for this user',
  ),
  too_many_enrolled_mfa_factors: define(
    422,
    g.resourceExhausted,
    'Maximum number of enrolled factors reached, unenroll to continue',
  ),
  mfa_verified_factor_exists: define(
    422,
    g.alreadyExists,
    'A verified phone factor already exists, unenroll the existing factor to continue',
  ),
  mfa_totp_enroll_not_enabled: define(422, g.failedPrecondition, 'MFA enroll is disabled for TOTP'),
  mfa_totp_verify_not_enabled: define(422, g.failedPrecondition, 'MFA verification is disabled for TOTP'),
  mfa_phone_enroll_not_enabled: define(422, g.failedPrecondition, 'MFA enroll is disabled for phones'),
  mfa_phone_verify_not_enabled: define(422, g.failedPrecondition, 'MFA verification is disabled for phones'),
  mfa_webauthn_enroll_not_enabled: define(422, g.failedPrecondition, 'MFA enroll is disabled for WebAuthn'),
  mfa_webauthn_verify_not_enabled: define(
    422,
    g.failedPrecondition,
    'MFA verification is disabled for WebAuthn',
  ),
  mfa_recovery_codes_enroll_not_enabled: define(
    422,
    g.failedPrecondition,
    'MFA enroll is disabled for recovery codes',
  ),
  mfa_recovery_codes_verify_not_enabled: define(
    422,
    g.failedPrecondition,
    'MFA verification is disabled for recovery codes',
  ),
  mfa_recovery_codes_sole_factor: define(
    422,
    g.failedPrecondition,
    'At least one other verified factor is required to generate recovery codes',
  ),
  mfa_recovery_codes_locked: define(
    429,
    g.resourceExhausted,
    'Too many failed verification attempts, try again later',
  ),
  mfa_verification_failed: define(422, g.unauthenticated, 'Invalid TOTP code entered'),
  mfa_challenge_expired: define(
    422,
    g.deadlineExceeded,
    'MFA challenge has expired, verify against another challenge or create a new one.',
  ),
  mfa_ip_address_mismatch: define(422, g.failedPrecondition, 'Challenge and verify IP addresses mismatch.'),
  mfa_verification_rejected: define(
    403,
    g.permissionDenied,
    'Further MFA verification attempts will be rejected.',
  ),

  // Hooks.
  unknown: define(403, g.permissionDenied, 'A hook rejected the request'),
  hook_timeout: define(422, g.deadlineExceeded, 'Failed to reach hook in time'),
  hook_timeout_after_retry: define(422, g.unavailable, 'Failed to reach hook after maximum retries'),
  hook_payload_over_size_limit: define(422, g.resourceExhausted, 'Payload size exceeded size limit'),
  hook_payload_invalid_content_type: define(400, g.invalidArgument, 'Invalid Content-Type'),
});

/** Limits what error messages echo. */
export function shorten(text: string): string {
  return text.slice(0, 64);
}

export type WeakPasswordReason = 'length' | 'characters' | 'pwned' | 'context';

/** `weak_password` with its reasons, which are part of the response. */
export class WeakPasswordError extends AppError {
  override readonly name = 'WeakPasswordError';
  readonly reasons: readonly WeakPasswordReason[];

  constructor(message: string, reasons: readonly WeakPasswordReason[]) {
    super('weak_password', errors.weak_password.definition, { message });
    this.reasons = reasons;
  }
}

/** `mfa_verification_failed` for a code that was right, and has been used. Pages say so. */
export class UsedCodeError extends AppError {
  override readonly name = 'UsedCodeError';

  constructor(message: string) {
    super('mfa_verification_failed', errors.mfa_verification_failed.definition, { message });
  }
}

/**
 * An error in the format of OAuth 2.0, in all API versions: `{ error, error_description }`.
 *
 * @see RFC 6749 §5.2 https://www.rfc-editor.org/rfc/rfc6749#section-5.2
 */
export class OAuthError extends AppError {
  override readonly name = 'OAuthError';

  /** Headers of the response, such as a challenge. */
  readonly headers: Readonly<Record<string, string>>;

  /** `code` is the value of `error`, the message that of `error_description`. */
  constructor(code: string, message: string, httpStatus = 400, headers: OAuthError['headers'] = {}) {
    super(code, { httpStatus, grpcStatus: g.invalidArgument, message });
    this.headers = headers;
  }
}

/** An error with `retry-after`. */
export class RetryLaterError extends AppError {
  override readonly name = 'RetryLaterError';
  readonly retryAfterSeconds: number;

  constructor(error: AppError, retryAfterSeconds: number) {
    const { code, httpStatus, grpcStatus, message, detail, cause } = error;
    super(code, { httpStatus, grpcStatus, message }, { ...(detail !== undefined && { detail }), cause });
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/**
 * OAuth 2.0 errors of redirects, by status.
 *
 * @see RFC 6749 §4.1.2.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1
 */
export const oauthErrorNames: Readonly<Record<number, string>> = {
  400: 'invalid_request',
  401: 'unauthorized_client',
  403: 'access_denied',
  500: 'server_error',
  503: 'temporarily_unavailable',
};
