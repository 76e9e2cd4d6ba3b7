import type { ComponentName } from '../http/open-api-components.ts';
import type { AdminScope } from '../sessions/admin-scopes.ts';

/** A component, a list of one, or one of several. */
export type ResponseBody =
  | ComponentName
  | readonly [ComponentName]
  | { readonly oneOf: readonly ComponentName[] };

/** Whose token an operation requires, and the scope that an API key needs. Neither: none. */
type Caller =
  | { readonly caller?: 'user'; readonly scope?: undefined }
  | { readonly caller: 'admin'; readonly scope: AdminScope };

/** Members of the document in addition to the schemas of a route. */
export type Operation = {
  readonly summary: string;
  /** Content type of a body without a schema. */
  readonly bodyType?: string;
  /** Whether it needs a CAPTCHA token, if CAPTCHAs are enabled. */
  readonly captcha?: true;
} & Caller &
  (
    | { readonly status: 204 | 302 | 303; readonly response?: undefined }
    /** Status: default 200. */
    | { readonly status?: 200 | 201; readonly response: ResponseBody }
  );

const forUser = { caller: 'user' } as const;
const forAdmin = (scope: AdminScope) => ({ caller: 'admin', scope }) as const;

/** Operations by `METHOD /path`, with parameters in braces. */
export const operations: Readonly<Record<string, Operation>> = {
  'GET /health': { summary: 'Name and version of the server', response: 'Health' },
  'GET /ready': {
    summary:
      'Readiness: 200, or 503 if the database is unavailable or read-only. `missing_indexes` names indexes that are being made',
    response: 'Readiness',
  },
  'GET /settings': { summary: 'Enabled features', response: 'Settings' },
  'GET /openapi.json': { summary: 'This document', response: 'Document' },
  'GET /.well-known/jwks.json': { summary: 'Public keys of access tokens (RFC 7517)', response: 'KeySet' },
  'GET /.well-known/openid-configuration': {
    summary: 'Issuer of access tokens and where its keys are (OpenID Connect Discovery)',
    response: 'OpenIdConfiguration',
  },

  'GET /.well-known/oauth-authorization-server': {
    summary: 'Metadata of the OAuth server (RFC 8414)',
    response: 'OpenIdConfiguration',
  },
  'POST /oauth/token': {
    summary:
      'Get tokens as an OAuth client: `authorization_code` (RFC 6749 §4.1.3), `refresh_token` (§6), `client_credentials` (§4.4)',
    response: 'ClientToken',
  },
  'POST /oauth/revoke': {
    summary: 'End the session of a token of the client (RFC 7009)',
    response: 'Empty',
  },
  'POST /oauth/device_authorization': {
    summary: 'Start the request of a device, for which a user enters a code (RFC 8628)',
    response: 'DeviceAuthorization',
  },
  'POST /oauth/par': {
    summary: 'Push the parameters of an authorization request (RFC 9126)',
    response: 'PushedRequest',
    status: 201,
  },
  'POST /oauth/introspect': {
    summary: 'Whether a token is valid, for its client or its resource (RFC 7662)',
    response: 'Introspection',
  },
  'POST /oauth/clients/register': {
    summary: 'Register an OAuth client, if allowed (RFC 7591)',
    response: 'RegisteredOAuthClient',
    status: 201,
  },
  'GET /oauth/authorize': {
    summary: 'Ask a user for access (RFC 6749 §4.1.1): redirects to the page of the application',
    status: 302,
  },
  'POST /oauth/authorize': { summary: 'The same, as a form (OpenID Connect Core §3.1.2.1)', status: 303 },
  'GET /oauth/logout': {
    summary:
      'Sign a user out for a client (OpenID Connect RP-Initiated Logout): redirects to the hosted page',
    status: 303,
  },
  'POST /oauth/logout': { summary: 'The same, as a form', status: 303 },
  'GET /oauth/authorizations/{authorization_id}': {
    ...forUser,
    summary:
      'Get a request for access, and bind it to the user. With an earlier consent: where to redirect to',
    response: { oneOf: ['OAuthAuthorization', 'OAuthRedirect'] },
  },
  'POST /oauth/authorizations/{authorization_id}/consent': {
    ...forUser,
    summary: '`approve` or `deny` a request for access. Returns where to redirect to',
    response: 'OAuthRedirect',
  },
  'GET /oauth/userinfo': {
    ...forUser,
    summary: 'Claims of the user by the scopes of the token (OpenID Connect Core §5.3)',
    response: 'UserInfo',
  },
  'POST /oauth/userinfo': {
    ...forUser,
    summary: 'The same (OpenID Connect Core §5.3.1)',
    response: 'UserInfo',
  },
  'GET /user/oauth/grants': {
    ...forUser,
    summary: 'List OAuth clients that the user has given access',
    response: ['OAuthGrant'],
  },
  'DELETE /user/oauth/grants': {
    ...forUser,
    summary: 'Revoke the access of an OAuth client, and end its sessions',
    status: 204,
  },

  'POST /signup': {
    summary: 'Sign up by email or phone; with neither, as an anonymous user',
    response: { oneOf: ['Session', 'User'] },
    captcha: true,
  },
  'POST /token': {
    summary: 'Get tokens by password, refresh token or PKCE code. Forms get the response of RFC 6749',
    response: 'Session',
    captcha: true,
  },
  'POST /otp': { summary: 'Send a sign-in link or code', response: 'SentMessage', captcha: true },
  'POST /magiclink': { summary: 'Send a sign-in link. Prefer /otp', response: 'Empty', captcha: true },
  'POST /recover': { summary: 'Send a password reset link', response: 'Empty', captcha: true },
  'POST /resend': { summary: 'Send a link or a code again', response: 'SentMessage', captcha: true },
  'GET /verify': { summary: 'Follow a link: signs in and redirects', status: 303 },
  'POST /verify': {
    summary: 'Verify a code or the token of a link',
    response: { oneOf: ['Session', 'AcceptedLink'] },
  },

  'GET /authorize': { summary: 'Sign in with an identity provider: redirects to it', status: 302 },
  'GET /callback': { summary: 'Response of an identity provider: signs in and redirects', status: 302 },
  'POST /callback': { summary: 'The same, as a form', status: 302 },

  'GET /user': { ...forUser, summary: 'Get the user', response: 'User' },
  'PUT /user': {
    ...forUser,
    summary: 'Change email, phone, password or metadata of the user',
    response: 'User',
  },
  'GET /user/identities': {
    ...forUser,
    summary: 'List the identities of the user',
    response: 'IdentityList',
  },
  'GET /user/identities/authorize': {
    ...forUser,
    summary: 'Link an identity: returns the URL to open with `skip_http_redirect=true`, or redirects to it',
    response: 'ProviderUrl',
  },
  'DELETE /user/identities/{identity_id}': { ...forUser, summary: 'Unlink an identity', response: 'Empty' },
  'GET /reauthenticate': {
    ...forUser,
    summary: 'Send a nonce that confirms the session',
    response: 'SentMessage',
  },
  'POST /reauthenticate': {
    ...forUser,
    summary:
      'Confirm the session with the current password or a nonce, before a change that requires a recent sign-in',
    response: 'Empty',
  },
  'POST /logout': { ...forUser, summary: 'End sessions: `global`, `local` or `others`', status: 204 },
  'GET /user/sessions': { ...forUser, summary: 'List the sessions of the user', response: 'SessionList' },
  'DELETE /user/sessions': { ...forUser, summary: 'End sessions of the user, as /logout', response: 'Empty' },
  'DELETE /user/sessions/{session_id}': {
    ...forUser,
    summary: 'End a session of the user',
    response: 'Empty',
  },

  'GET /user/api-keys': { ...forUser, summary: 'List the API keys of the user', response: 'OwnApiKeyList' },
  'POST /user/api-keys': {
    ...forUser,
    summary: 'Create an API key of the user',
    response: 'CreatedOwnApiKey',
    status: 201,
  },
  'GET /user/api-keys/{key_id}': { ...forUser, summary: 'Get an API key of the user', response: 'OwnApiKey' },
  'PATCH /user/api-keys/{key_id}': {
    ...forUser,
    summary: 'Change an API key of the user. An empty text or list removes the value',
    response: 'OwnApiKey',
  },
  'DELETE /user/api-keys/{key_id}': { ...forUser, summary: 'Revoke an API key of the user', status: 204 },
  'POST /user/api-keys/{key_id}/rotate': {
    ...forUser,
    summary: 'Replace an API key of the user. The old one is valid for `grace`',
    response: 'CreatedOwnApiKey',
    status: 201,
  },

  'POST /factors': { ...forUser, summary: 'Enroll a second factor', response: 'EnrolledFactor' },
  'POST /factors/{factor_id}/challenge': {
    ...forUser,
    summary: 'Create a challenge for a factor',
    response: 'Challenge',
  },
  'POST /factors/{factor_id}/verify': {
    ...forUser,
    summary: 'Verify a factor. Returns a session with aal2',
    response: 'Session',
  },
  'DELETE /factors/{factor_id}': { ...forUser, summary: 'Remove a factor', response: 'RemovedFactor' },
  'GET /factors/recovery-codes': {
    ...forUser,
    summary: 'Count the recovery codes',
    response: 'RecoveryCodes',
  },
  'POST /factors/recovery-codes': {
    ...forUser,
    summary: 'Generate recovery codes',
    response: 'RecoveryCodes',
  },
  'POST /factors/recovery-codes/regenerate': {
    ...forUser,
    summary: 'Replace the recovery codes',
    response: 'RecoveryCodes',
  },
  'POST /factors/recovery-codes/verify': {
    ...forUser,
    summary: 'Spend a recovery code. Returns a session with aal2',
    response: 'Session',
  },
  'DELETE /factors/recovery-codes': {
    ...forUser,
    summary: 'Remove the recovery codes',
    response: 'RemovedFactor',
  },

  'POST /passkeys/authentication/options': {
    summary: 'Create a challenge for a sign-in with a passkey',
    response: 'PasskeyChallenge',
    captcha: true,
  },
  'POST /passkeys/authentication/verify': { summary: 'Sign in with a passkey', response: 'Session' },
  'POST /passkeys/registration/options': {
    ...forUser,
    summary: 'Create a challenge for a new passkey',
    response: 'PasskeyChallenge',
  },
  'POST /passkeys/registration/verify': { ...forUser, summary: 'Register a passkey', response: 'Passkey' },
  'GET /passkeys': { ...forUser, summary: 'List the passkeys of the user', response: ['Passkey'] },
  'PATCH /passkeys/{passkey_id}': { ...forUser, summary: 'Rename a passkey', response: 'Passkey' },
  'DELETE /passkeys/{passkey_id}': { ...forUser, summary: 'Remove a passkey', status: 204 },

  'GET /organizations': {
    ...forUser,
    summary: 'List the organizations of the user',
    response: 'OrganizationList',
  },
  'POST /organizations': {
    ...forUser,
    summary: 'Create an organization, whose owner is the user',
    response: 'Organization',
    status: 201,
  },
  'GET /organizations/{organization_id}': {
    ...forUser,
    summary: 'Get an organization of the user',
    response: 'Organization',
  },
  'PATCH /organizations/{organization_id}': {
    ...forUser,
    summary: 'Change name and slug of an organization, and the role of users who join by domain',
    response: 'Organization',
  },
  'DELETE /organizations/{organization_id}': {
    ...forUser,
    summary: 'Delete an organization',
    status: 204,
  },
  'POST /organizations/{organization_id}/join': {
    ...forUser,
    summary: 'Join an organization that has the domain of the confirmed email of the user',
    response: 'Organization',
  },
  'GET /organizations/{organization_id}/members': {
    ...forUser,
    summary: 'List the members of an organization',
    response: 'MemberList',
  },
  'PATCH /organizations/{organization_id}/members/{user_id}': {
    ...forUser,
    summary: 'Change the role of a member',
    response: 'Member',
  },
  'DELETE /organizations/{organization_id}/members/{user_id}': {
    ...forUser,
    summary: 'Remove a member, or leave with the own id',
    status: 204,
  },
  'GET /organizations/{organization_id}/invitations': {
    ...forUser,
    summary: 'List pending invitations to an organization',
    response: 'InvitationList',
  },
  'POST /organizations/{organization_id}/invitations': {
    ...forUser,
    summary: 'Invite an email address to an organization. Replaces an earlier invitation of the address',
    response: 'Invitation',
    status: 201,
  },
  'DELETE /organizations/{organization_id}/invitations/{invitation_id}': {
    ...forUser,
    summary: 'Revoke an invitation to an organization',
    status: 204,
  },
  'GET /organizations/{organization_id}/domains': {
    ...forUser,
    summary: 'List the email domains of an organization',
    response: 'DomainList',
  },
  'POST /organizations/{organization_id}/domains': {
    ...forUser,
    summary:
      'Add an email domain. The organization has it once it is verified by the DNS record of the response',
    response: 'Domain',
    status: 201,
  },
  'POST /organizations/{organization_id}/domains/{domain}/verify': {
    ...forUser,
    summary: 'Verify an email domain by its DNS record',
    response: 'Domain',
  },
  'DELETE /organizations/{organization_id}/domains/{domain}': {
    ...forUser,
    summary: 'Remove an email domain from an organization',
    status: 204,
  },
  'GET /organizations/{organization_id}/api-keys': {
    ...forUser,
    summary: 'List the API keys of an organization',
    response: 'OwnApiKeyList',
  },
  'POST /organizations/{organization_id}/api-keys': {
    ...forUser,
    summary: 'Create an API key of an organization',
    response: 'CreatedOwnApiKey',
    status: 201,
  },
  'GET /organizations/{organization_id}/api-keys/{key_id}': {
    ...forUser,
    summary: 'Get an API key of an organization',
    response: 'OwnApiKey',
  },
  'PATCH /organizations/{organization_id}/api-keys/{key_id}': {
    ...forUser,
    summary: 'Change an API key of an organization. An empty text or list removes the value',
    response: 'OwnApiKey',
  },
  'DELETE /organizations/{organization_id}/api-keys/{key_id}': {
    ...forUser,
    summary: 'Revoke an API key of an organization',
    status: 204,
  },
  'POST /organizations/{organization_id}/api-keys/{key_id}/rotate': {
    ...forUser,
    summary: 'Replace an API key of an organization. The old one is valid for `grace`',
    response: 'CreatedOwnApiKey',
    status: 201,
  },
  'POST /organizations/join': {
    ...forUser,
    summary: 'Join an organization with the token of an invitation to the email address of the user',
    response: 'Organization',
  },
  'POST /user/organization': {
    ...forUser,
    summary:
      'Choose the active organization of the session; `null` for none. Returns an access token for it; the refresh token stays valid',
    response: 'OrganizationToken',
  },

  'POST /invite': { ...forAdmin('users:write'), summary: 'Invite a user by email', response: 'User' },
  'GET /admin/users': {
    ...forAdmin('users:read'),
    summary:
      'List users, by page (`X-Total-Count`, `Link`) or by cursor (`pagination`, `Link`). Cursors are for large lists: their cost does not depend on the position',
    response: 'UserList',
  },
  'POST /admin/users': { ...forAdmin('users:write'), summary: 'Create a user', response: 'User' },
  'POST /admin/users/import': {
    ...forAdmin('users:write'),
    summary:
      'Import users: one JSON object per line, at most 10,000. Users that are present are skipped. Returns counts, and `errors` with line numbers',
    response: 'ImportResult',
    bodyType: 'application/x-ndjson',
  },
  'GET /admin/users/{user_id}': { ...forAdmin('users:read'), summary: 'Get a user', response: 'User' },
  'POST /admin/users/{user_id}': {
    ...forAdmin('users:write'),
    summary: 'Create a user with this id',
    response: 'User',
  },
  'PUT /admin/users/{user_id}': {
    ...forAdmin('users:write'),
    summary: 'Change a user; `ban_duration` bans',
    response: 'User',
  },
  'DELETE /admin/users/{user_id}': {
    ...forAdmin('users:write'),
    summary: 'Delete a user',
    response: 'Empty',
  },
  'GET /admin/users/{user_id}/sessions': {
    ...forAdmin('users:read'),
    summary: 'List the sessions of a user',
    response: 'SessionList',
  },
  'DELETE /admin/users/{user_id}/sessions': {
    ...forAdmin('users:write'),
    summary: 'End all sessions of a user',
    response: 'Empty',
  },
  'DELETE /admin/users/{user_id}/sessions/{session_id}': {
    ...forAdmin('users:write'),
    summary: 'End a session of a user',
    response: 'Empty',
  },
  'GET /admin/users/{user_id}/factors': {
    ...forAdmin('users:read'),
    summary: 'List the second factors of a user',
    response: ['Factor'],
  },
  'PUT /admin/users/{user_id}/factors/{factor_id}': {
    ...forAdmin('users:write'),
    summary: 'Change a factor',
    response: 'Factor',
  },
  'DELETE /admin/users/{user_id}/factors/{factor_id}': {
    ...forAdmin('users:write'),
    summary: 'Remove a factor',
    response: 'Factor',
  },
  'GET /admin/users/{user_id}/passkeys': {
    ...forAdmin('users:read'),
    summary: 'List the passkeys of a user',
    response: ['Passkey'],
  },
  'DELETE /admin/users/{user_id}/passkeys/{passkey_id}': {
    ...forAdmin('users:write'),
    summary: 'Remove a passkey',
    status: 204,
  },
  'POST /admin/generate_link': {
    ...forAdmin('users:write'),
    summary: 'Generate a link without sending it',
    response: 'ActionLink',
  },
  'GET /admin/custom-providers': {
    ...forAdmin('providers:write'),
    summary: 'List custom identity providers',
    response: 'CustomProviderList',
  },
  'POST /admin/custom-providers': {
    ...forAdmin('providers:write'),
    summary: 'Add an identity provider, by OpenID Connect discovery or OAuth 2.0',
    response: 'CustomProvider',
    status: 201,
  },
  'GET /admin/custom-providers/{identifier}': {
    ...forAdmin('providers:write'),
    summary: 'Get a custom identity provider',
    response: 'CustomProvider',
  },
  'PUT /admin/custom-providers/{identifier}': {
    ...forAdmin('providers:write'),
    summary: 'Change a custom identity provider',
    response: 'CustomProvider',
  },
  'DELETE /admin/custom-providers/{identifier}': {
    ...forAdmin('providers:write'),
    summary: 'Delete a custom identity provider',
    status: 204,
  },
  'GET /admin/oauth/clients': {
    ...forAdmin('clients:write'),
    summary: 'List OAuth clients, newest first',
    response: 'OAuthClientList',
  },
  'POST /admin/oauth/clients': {
    ...forAdmin('clients:write'),
    summary: 'Create an OAuth client. The secret is shown once',
    response: 'OAuthClient',
    status: 201,
  },
  'GET /admin/oauth/clients/{client_id}': {
    ...forAdmin('clients:write'),
    summary: 'Get an OAuth client',
    response: 'OAuthClient',
  },
  'PUT /admin/oauth/clients/{client_id}': {
    ...forAdmin('clients:write'),
    summary: 'Change the given members of an OAuth client. Empty values remove optional members',
    response: 'OAuthClient',
  },
  'DELETE /admin/oauth/clients/{client_id}': {
    ...forAdmin('clients:write'),
    summary: 'Delete an OAuth client, and end its tokens',
    status: 204,
  },
  'POST /admin/oauth/clients/{client_id}/regenerate_secret': {
    ...forAdmin('clients:write'),
    summary: 'Replace the secret of an OAuth client, and end its tokens',
    response: 'OAuthClient',
  },
  'GET /admin/organizations': {
    ...forAdmin('organizations:write'),
    summary: 'List organizations, newest first, by cursor (`pagination`, `Link`)',
    response: 'OrganizationPage',
  },
  'POST /admin/organizations': {
    ...forAdmin('organizations:write'),
    summary: 'Create an organization',
    response: 'Organization',
    status: 201,
  },
  'GET /admin/organizations/{organization_id}': {
    ...forAdmin('organizations:write'),
    summary: 'Get an organization',
    response: 'Organization',
  },
  'PUT /admin/organizations/{organization_id}': {
    ...forAdmin('organizations:write'),
    summary: 'Change an organization. An empty text or object removes the value',
    response: 'Organization',
  },
  'DELETE /admin/organizations/{organization_id}': {
    ...forAdmin('organizations:write'),
    summary: 'Delete an organization',
    status: 204,
  },
  'GET /admin/organizations/{organization_id}/domains': {
    ...forAdmin('organizations:write'),
    summary: 'List the email domains of an organization',
    response: 'DomainList',
  },
  'PUT /admin/organizations/{organization_id}/domains/{domain}': {
    ...forAdmin('organizations:write'),
    summary: 'Give an email domain to an organization. With `domain_role`, its users may join',
    response: 'Domain',
  },
  'DELETE /admin/organizations/{organization_id}/domains/{domain}': {
    ...forAdmin('organizations:write'),
    summary: 'Take an email domain from an organization',
    status: 204,
  },
  'GET /admin/organizations/{organization_id}/members': {
    ...forAdmin('organizations:write'),
    summary: 'List the members of an organization',
    response: 'MemberList',
  },
  'PUT /admin/organizations/{organization_id}/members/{user_id}': {
    ...forAdmin('organizations:write'),
    summary: 'Add a user to an organization, or change their role',
    response: 'Member',
  },
  'DELETE /admin/organizations/{organization_id}/members/{user_id}': {
    ...forAdmin('organizations:write'),
    summary: 'Remove a member from an organization',
    status: 204,
  },
  'GET /admin/api-keys': {
    ...forAdmin('keys:write'),
    summary: 'List API keys, newest first',
    response: 'ApiKeyList',
  },
  'POST /admin/api-keys': {
    ...forAdmin('keys:write'),
    summary: 'Create an API key of a user, an organisation or a machine',
    response: 'CreatedApiKey',
    status: 201,
  },
  'GET /admin/api-keys/{key_id}': {
    ...forAdmin('keys:write'),
    summary: 'Get an API key',
    response: 'ApiKey',
  },
  'PUT /admin/api-keys/{key_id}': {
    ...forAdmin('keys:write'),
    summary: 'Change an API key. An empty text, list or object removes the value',
    response: 'ApiKey',
  },
  'POST /admin/api-keys/{key_id}/rotate': {
    ...forAdmin('keys:write'),
    summary: 'Replace an API key. The old one is valid for `grace`',
    response: 'CreatedApiKey',
    status: 201,
  },
  'POST /admin/api-keys/verify': {
    ...forAdmin('keys:verify'),
    summary: 'Check an API key, as ext_authz does',
    response: 'VerifiedApiKey',
  },
  'POST /admin/policies/explain': {
    ...forAdmin('policies:read'),
    summary: 'Explain how a check would be decided, without counting it',
    response: 'CheckExplanation',
  },
  'POST /admin/api-keys/import': {
    ...forAdmin('keys:write'),
    summary:
      'Import SHA-256 digests of API keys from NDJSON, at most 10,000. Digests that are present are skipped',
    response: 'ImportResult',
    bodyType: 'application/x-ndjson',
  },
  'DELETE /admin/api-keys/{key_id}': { ...forAdmin('keys:write'), summary: 'Revoke an API key', status: 204 },
  'GET /admin/redirect-check': {
    ...forAdmin('users:read'),
    summary: 'Explain which rule allows a `redirect_to`, or why none does',
    response: 'RedirectCheck',
  },
  'GET /admin/audit': {
    ...forAdmin('audit:read'),
    summary: 'List the audit log, newest first',
    response: ['AuditEntry'],
  },
  'GET /admin/events/failed': {
    ...forAdmin('webhooks:write'),
    summary: 'List events whose delivery was given up',
    response: 'EventList',
  },
  'POST /admin/events/{event_id}/redeliver': {
    ...forAdmin('webhooks:write'),
    summary: 'Deliver a failed event again',
    response: 'Event',
  },
  'GET /admin/webhooks': {
    ...forAdmin('webhooks:write'),
    summary: 'List the endpoints of events',
    response: 'WebhookList',
  },
  'POST /admin/webhooks': {
    ...forAdmin('webhooks:write'),
    summary: 'Add an endpoint of events. Returns its secret, once',
    response: 'Webhook',
    status: 201,
  },
  'GET /admin/webhooks/{webhook_id}': {
    ...forAdmin('webhooks:write'),
    summary: 'Get an endpoint',
    response: 'Webhook',
  },
  'PUT /admin/webhooks/{webhook_id}': {
    ...forAdmin('webhooks:write'),
    summary: 'Change an endpoint: name, URL, types of events, or whether it is disabled',
    response: 'Webhook',
  },
  'DELETE /admin/webhooks/{webhook_id}': {
    ...forAdmin('webhooks:write'),
    summary: 'Remove an endpoint and the events that wait for it',
    status: 204,
  },
  'POST /admin/webhooks/{webhook_id}/rotate': {
    ...forAdmin('webhooks:write'),
    summary: 'Make a new secret; the old one signs, too, for `grace` (24h by default). Returns it, once',
    response: 'Webhook',
  },
  'POST /admin/webhooks/{webhook_id}/test': {
    ...forAdmin('webhooks:write'),
    summary: 'Post an event `webhook.test` to an endpoint at once',
    response: 'WebhookTest',
  },
};
