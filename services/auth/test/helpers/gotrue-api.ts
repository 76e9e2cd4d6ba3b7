// Names of GoTrue's API, of its published documentation and versions up to September 2026. The
// list of differences in docs/coming-from-gotrue.md is compared with them.

/** Members by name, separated by blanks. A dot is before a member of a member. */
type Members = string;

const challenge = 'code_challenge code_challenge_method';
const captcha = 'gotrue_meta_security.captcha_token';
const adminUser =
  'id aud role email phone password password_hash email_confirm phone_confirm user_metadata app_metadata ban_duration';
const customProvider =
  'provider_type identifier name client_id client_secret acceptable_client_ids scopes pkce_enabled attribute_mapping custom_claims_allowlist authorization_params enabled email_optional issuer discovery_url skip_nonce_check authorization_url token_url userinfo_url jwks_uri';

const oauthClient =
  'client_name client_uri logo_uri redirect_uris grant_types client_type token_endpoint_auth_method';
const shownClient = `${oauthClient} client_id client_secret response_types registration_type created_at updated_at`;
const consentClient = 'client.id client.name client.uri client.logo_uri';

/** Paths below these are of features that Tollgate does not have. */
export const gotrueFeatures = ['/sso', '/admin/sso/providers', '/scim/v2'];

/** Members of requests, by route. Both servers have all of these routes. */
export const gotrueRoutes: Readonly<Record<string, Members>> = {
  'GET /health': '',
  'GET /settings': '',
  'GET /.well-known/jwks.json': '',
  'GET /.well-known/openid-configuration': '',
  'GET /.well-known/oauth-authorization-server': '',
  'POST /oauth/clients/register': oauthClient,
  'GET /oauth/authorize': '',
  'GET /oauth/authorizations/{authorization_id}': '',
  'POST /oauth/authorizations/{authorization_id}/consent': 'action',
  'POST /oauth/token':
    'grant_type code refresh_token redirect_uri client_id client_secret code_verifier resource',
  'GET /oauth/userinfo': '',
  'GET /user/oauth/grants': '',
  'DELETE /user/oauth/grants': '',
  'GET /admin/oauth/clients': '',
  'POST /admin/oauth/clients': oauthClient,
  'GET /admin/oauth/clients/{client_id}': '',
  'PUT /admin/oauth/clients/{client_id}': oauthClient,
  'DELETE /admin/oauth/clients/{client_id}': '',
  'POST /admin/oauth/clients/{client_id}/regenerate_secret': '',
  'POST /signup': `email phone password data channel ${challenge} ${captcha}`,
  'POST /token': `email phone password refresh_token auth_code code_verifier id_token access_token nonce provider client_id issuer link_identity message signature chain ${captcha}`,
  'POST /otp': `email phone create_user data channel ${challenge} ${captcha}`,
  'POST /magiclink': `email data ${challenge} ${captcha}`,
  'POST /recover': `email ${challenge} ${captcha}`,
  'POST /resend': `type email phone ${captcha}`,
  'GET /verify': '',
  'POST /verify': 'type token token_hash email phone redirect_to',
  'GET /authorize': '',
  'GET /callback': '',
  'POST /callback': '',
  'GET /user': '',
  'PUT /user': `email phone password current_password nonce data app_metadata channel ${challenge}`,
  'GET /user/identities/authorize': '',
  'DELETE /user/identities/{identity_id}': '',
  'GET /reauthenticate': '',
  'POST /logout': '',
  'POST /factors': 'factor_type friendly_name issuer phone',
  'POST /factors/{factor_id}/challenge': 'channel webauthn.type webauthn.credential_response',
  'POST /factors/{factor_id}/verify': 'challenge_id code webauthn.type webauthn.credential_response',
  'DELETE /factors/{factor_id}': '',
  'GET /factors/recovery-codes': '',
  'POST /factors/recovery-codes': 'friendly_name',
  'POST /factors/recovery-codes/regenerate': '',
  'POST /factors/recovery-codes/verify': 'code',
  'DELETE /factors/recovery-codes': '',
  'POST /passkeys/authentication/options': captcha,
  'POST /passkeys/authentication/verify': 'challenge_id credential',
  'POST /passkeys/registration/options': '',
  'POST /passkeys/registration/verify': 'challenge_id credential',
  'GET /passkeys': '',
  'PATCH /passkeys/{passkey_id}': 'friendly_name',
  'DELETE /passkeys/{passkey_id}': '',
  'POST /invite': 'email data',
  'GET /admin/users': '',
  'POST /admin/users': adminUser,
  'GET /admin/users/{user_id}': '',
  'PUT /admin/users/{user_id}': adminUser,
  'DELETE /admin/users/{user_id}': 'should_soft_delete',
  'GET /admin/users/{user_id}/factors': '',
  'PUT /admin/users/{user_id}/factors/{factor_id}': 'friendly_name phone',
  'DELETE /admin/users/{user_id}/factors/{factor_id}': '',
  'GET /admin/users/{user_id}/passkeys': '',
  'DELETE /admin/users/{user_id}/passkeys/{passkey_id}': '',
  'POST /admin/generate_link': 'type email new_email password data redirect_to',
  'GET /admin/audit': '',
  'GET /admin/custom-providers': '',
  'POST /admin/custom-providers': customProvider,
  'GET /admin/custom-providers/{identifier}': '',
  'PUT /admin/custom-providers/{identifier}': customProvider,
  'DELETE /admin/custom-providers/{identifier}': '',
};

const user =
  'id aud role email email_confirmed_at invited_at phone phone_confirmed_at confirmation_sent_at confirmed_at recovery_sent_at new_email email_change_sent_at new_phone phone_change_sent_at reauthentication_sent_at last_sign_in_at app_metadata user_metadata factors identities created_at updated_at banned_until deleted_at is_anonymous';

/** Responses of these routes, by the name of our component. */
export const gotrueComponents: Readonly<Record<string, Members>> = {
  OAuthClient: shownClient,
  OAuthClientList: 'clients',
  RegisteredOAuthClient: shownClient,
  ClientToken: 'access_token token_type expires_in refresh_token id_token',
  OAuthAuthorization: `authorization_id redirect_uri ${consentClient} user.id user.email scope`,
  OAuthRedirect: 'redirect_url',
  OAuthGrant: `${consentClient} scopes granted_at`,
  UserInfo:
    'sub email email_verified name picture preferred_username updated_at user_metadata phone phone_verified',
  Empty: '',
  Health: 'version name description',
  Settings:
    'external disable_signup mailer_autoconfirm phone_autoconfirm sms_provider saml_enabled saml_private_key_next_configured passkeys_enabled',
  KeySet: 'keys',
  OpenIdConfiguration:
    'issuer authorization_endpoint token_endpoint jwks_uri userinfo_endpoint registration_endpoint scopes_supported response_types_supported response_modes_supported grant_types_supported subject_types_supported id_token_signing_alg_values_supported token_endpoint_auth_methods_supported claims_supported code_challenge_methods_supported',
  SentMessage: 'message_id',
  AcceptedLink: 'msg code',
  User: user,
  UserList: 'users aud pagination.next_cursor pagination.has_more',
  Identity: 'identity_id id user_id identity_data provider last_sign_in_at created_at updated_at email',
  Factor:
    'id created_at updated_at status friendly_name factor_type phone last_challenged_at web_authn_aaguid last_webauthn_challenge_data',
  Session:
    'access_token token_type expires_in expires_at refresh_token user provider_token provider_refresh_token weak_password.message weak_password.reasons id_token',
  ProviderUrl: 'url',
  EnrolledFactor: 'id type friendly_name totp.qr_code totp.secret totp.uri phone',
  Challenge: 'id type expires_at webauthn.type webauthn.credential_options',
  RemovedFactor: 'id',
  RecoveryCodes: 'id type friendly_name total remaining codes',
  PasskeyChallenge: 'challenge_id options expires_at',
  Passkey: 'id friendly_name created_at last_used_at',
  ActionLink: `${user} action_link email_otp hashed_token verification_type redirect_to`,
  AuditEntry: 'id payload created_at ip_address',
  CustomProvider: `id ${customProvider.replace(' client_secret', '')} discovery_document created_at updated_at`,
  CustomProviderList: 'providers',
  Error: 'code error_code msg error_id weak_password.reasons',
  VersionedError: 'code message weak_password.reasons',
  OAuthError: 'error error_description',
};

/** Names as Prometheus shows them. */
export const gotrueMetrics = [
  'gotrue_running',
  'http_status_codes_total',
  'http_server_request_duration_seconds',
  'http_server_request_body_size_bytes',
  'http_server_response_body_size_bytes',
  'global_auth_errors_total',
  'global_auth_email_send_operations_total',
  'global_auth_email_send_errors_total',
  'gotrue_email_rate_limit_counter_total',
  'gotrue_generate_from_password_submitted_total',
  'gotrue_generate_from_password_completed_total',
  'gotrue_compare_hash_and_password_submitted_total',
  'gotrue_compare_hash_and_password_completed_total',
  'gotrue_cleanup_affected_rows_total',
  'gotrue_otp_token_read_legacy_fallback_total',
];

/** Values of `error_code`. */
export const gotrueErrorCodes = `
anonymous_provider_disabled bad_code_verifier bad_json bad_jwt bad_oauth_callback bad_oauth_state
captcha_failed conflict current_password_invalid current_password_required custom_provider_not_found
email_address_invalid email_address_not_authorized email_address_not_provided
email_conflict_identity_not_deletable email_exists email_not_confirmed email_provider_disabled
feature_disabled flow_state_already_used flow_state_expired flow_state_not_found
hook_payload_invalid_content_type hook_payload_over_size_limit hook_timeout hook_timeout_after_retry
identity_already_exists identity_not_found insufficient_aal invalid_credentials invite_not_found
manual_linking_disabled mfa_challenge_expired mfa_factor_name_conflict mfa_factor_not_found
mfa_ip_address_mismatch mfa_phone_enroll_not_enabled mfa_phone_verify_not_enabled
mfa_recovery_codes_enroll_not_enabled mfa_recovery_codes_locked mfa_recovery_codes_sole_factor
mfa_recovery_codes_verify_not_enabled mfa_totp_enroll_not_enabled mfa_totp_verify_not_enabled
mfa_verification_failed mfa_verification_rejected mfa_verified_factor_exists mfa_webauthn_enroll_not_enabled
mfa_webauthn_verify_not_enabled no_authorization not_admin oauth_authorization_not_found
oauth_client_not_found oauth_client_state_expired oauth_client_state_not_found oauth_consent_not_found
oauth_dynamic_client_registration_disabled oauth_invalid_state oauth_provider_not_supported otp_disabled
otp_expired over_custom_provider_quota over_email_send_rate_limit over_request_rate_limit
over_sms_send_rate_limit passkey_disabled phone_exists phone_not_confirmed phone_provider_disabled
provider_disabled provider_email_needs_verification reauthentication_needed reauthentication_not_valid
refresh_token_already_used refresh_token_not_found request_timeout same_password saml_assertion_no_email
saml_assertion_no_user_id saml_entity_id_mismatch saml_idp_already_exists saml_idp_not_found
saml_metadata_fetch_failed saml_provider_disabled saml_relay_state_expired saml_relay_state_not_found
session_expired session_not_found signup_disabled single_identity_not_deletable sms_send_failed
sso_domain_already_exists sso_provider_disabled sso_provider_not_found too_many_enrolled_mfa_factors
too_many_passkeys unexpected_audience unexpected_failure unknown user_already_exists user_banned
user_not_found user_sso_managed validation_failed weak_password web3_provider_disabled web3_unsupported_chain
webauthn_challenge_expired webauthn_challenge_not_found webauthn_credential_exists
webauthn_credential_not_found webauthn_verification_failed
`
  .trim()
  .split(/\s+/);
