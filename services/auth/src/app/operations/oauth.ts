import { forUser, type Operations } from './operation.ts';

export const oauthOperations: Operations = {
  'GET /.well-known/oauth-authorization-server': {
    id: 'getOAuthMetadata',
    summary: 'Metadata of the OAuth server (RFC 8414)',
    response: 'OpenIdConfiguration',
  },
  'POST /oauth/token': {
    id: 'createOAuthToken',
    summary:
      'Get tokens as an OAuth client: `authorization_code` (RFC 6749 §4.1.3), `refresh_token` (§6), `client_credentials` (§4.4)',
    response: 'ClientToken',
    example: ['grant_type', 'client_id', 'code', 'redirect_uri', 'code_verifier'],
  },
  'POST /oauth/revoke': {
    id: 'revokeOAuthToken',
    summary: 'End the session of a token of the client (RFC 7009)',
    response: 'Empty',
    example: ['client_id', 'token'],
  },
  'POST /oauth/device_authorization': {
    id: 'authorizeDevice',
    summary: 'Start the request of a device, for which a user enters a code (RFC 8628)',
    response: 'DeviceAuthorization',
    example: ['client_id', 'scope'],
  },
  'POST /oauth/par': {
    id: 'pushAuthorizationRequest',
    summary: 'Push the parameters of an authorization request (RFC 9126)',
    response: 'PushedRequest',
    status: 201,
    example: ['client_id'],
  },
  'POST /oauth/introspect': {
    id: 'introspectToken',
    summary: 'Whether a token is valid, for its client or its resource (RFC 7662)',
    response: 'Introspection',
    example: ['client_id', 'client_secret', 'token'],
  },
  'POST /oauth/clients/register': {
    id: 'registerOAuthClient',
    summary: 'Register an OAuth client, if allowed (RFC 7591)',
    response: 'RegisteredOAuthClient',
    status: 201,
    example: ['client_name', 'redirect_uris'],
  },
  'GET /oauth/authorize': {
    id: 'authorizeOAuthClient',
    summary: 'Ask a user for access (RFC 6749 §4.1.1): redirects to the page of the application',
    status: 302,
  },
  'POST /oauth/authorize': {
    id: 'authorizeOAuthClientByForm',
    summary: 'Ask a user for access by a form (OpenID Connect Core §3.1.2.1)',
    status: 303,
  },
  'GET /oauth/logout': {
    id: 'endOAuthSession',
    summary:
      'Sign a user out for a client (OpenID Connect RP-Initiated Logout): redirects to the hosted page',
    status: 303,
  },
  'POST /oauth/logout': {
    id: 'endOAuthSessionByForm',
    summary: 'Sign a user out for a client by a form',
    status: 303,
  },
  'GET /oauth/authorizations/{authorization_id}': {
    id: 'getOAuthAuthorization',
    ...forUser,
    summary:
      'Get a request for access, and bind it to the user. With an earlier consent: where to redirect to',
    response: { oneOf: ['OAuthAuthorization', 'OAuthRedirect'] },
  },
  'POST /oauth/authorizations/{authorization_id}/consent': {
    id: 'decideOAuthAuthorization',
    ...forUser,
    summary: '`approve` or `deny` a request for access. Returns where to redirect to',
    response: 'OAuthRedirect',
  },
  'GET /oauth/userinfo': {
    id: 'getUserInfo',
    ...forUser,
    summary: 'Claims of the user by the scopes of the token (OpenID Connect Core §5.3)',
    response: 'UserInfo',
  },
  'POST /oauth/userinfo': {
    id: 'getUserInfoByForm',
    ...forUser,
    summary: 'Claims of the user, asked for by POST (OpenID Connect Core §5.3.1)',
    response: 'UserInfo',
  },
  'GET /user/oauth/grants': {
    id: 'listOAuthGrants',
    ...forUser,
    summary: 'List OAuth clients that the user has given access',
    response: ['OAuthGrant'],
  },
  'DELETE /user/oauth/grants': {
    id: 'revokeOAuthGrant',
    ...forUser,
    summary: 'Revoke the access of an OAuth client, and end its sessions',
    status: 204,
  },
};
