import { authenticateClient } from './client-auth.ts';
import { grants } from './grants.ts';
import { type EndpointRequest, type PendingCode, ProtocolError, type ServerContext } from './settings.ts';
import type { TestGrant } from './tokens.ts';

/**
 * The token endpoint.
 *
 * @throws ProtocolError as in RFC 6749 §5.2.
 */
export async function tokenEndpoint(context: ServerContext, request: EndpointRequest): Promise<Response> {
  const client = await authenticateClient(context, request);
  const grantType = request.params.get('grant_type') ?? '';
  const handler = grants.get(grantType);
  if (handler === undefined) throw new ProtocolError('unsupported_grant_type', `no grant ${grantType}`);
  const outcome = await handler(context, client, request.params);
  if (!outcome.ok) throw outcome.error;
  const body = await issueTokens(context, outcome.grant, outcome.withRefreshToken);
  return Response.json(
    { ...body, ...(grantType.endsWith(':token-exchange') && { issued_token_type: accessTokenType }) },
    { headers: { 'cache-control': 'no-store' } },
  );
}

const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token';

/** A successful token response (RFC 6749 §5.1), with an ID token if the scope contains `openid`. */
export interface TokenAnswer {
  access_token: string;
  token_type: 'Bearer';
  expires_in: number;
  scope?: string;
  refresh_token?: string;
  id_token?: string;
}

/** Issues tokens for a grant. */
export async function issueTokens(
  context: ServerContext,
  grant: TestGrant,
  withRefreshToken: boolean,
): Promise<TokenAnswer> {
  const { ledger, settings } = context;
  const answer: TokenAnswer = {
    access_token: ledger.issueAccessToken(grant).value,
    token_type: 'Bearer',
    expires_in: settings.accessTokenTtlSeconds,
  };
  if (grant.scope !== '') answer.scope = grant.scope;
  if (withRefreshToken) answer.refresh_token = ledger.issueRefreshToken(grant).value;
  if (grant.scope.split(' ').includes('openid')) answer.id_token = await makeIdToken(context, grant);
  return answer;
}

/** @see OpenID Connect Core §2 https://openid.net/specs/openid-connect-core-1_0.html#IDToken */
async function makeIdToken(context: ServerContext, grant: TestGrant): Promise<string> {
  const { settings, now, signingKey } = context;
  const issuedAt = Math.floor(now());
  const user = settings.users.find(({ subject, username }) => (subject ?? username) === grant.subject);
  const key = await signingKey();
  return key.sign({
    ...user?.claims,
    iss: settings.issuer,
    sub: grant.subject,
    aud: grant.clientId,
    iat: issuedAt,
    exp: issuedAt + settings.accessTokenTtlSeconds,
    ...(grant.nonce !== undefined && { nonce: grant.nonce }),
  });
}

/** The user's decision. */
export interface AuthorizationDecision {
  /** The user who signs in. Default: the first user of the server. */
  subject?: string;
  /** Whether the user refuses: the callback has `access_denied`. */
  deny?: boolean;
}

/**
 * The authorization endpoint: redirects to the callback as if the user had decided.
 *
 * @throws ProtocolError without a redirect if client or redirect URI are invalid.
 * @see RFC 6749 §4.1.1, §4.1.2 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.1
 */
export async function authorizationEndpoint(
  context: ServerContext,
  { params }: EndpointRequest,
  decision: AuthorizationDecision = {},
): Promise<Response> {
  const callback = await decide(context, params, decision);
  return new Response(null, { status: 302, headers: { location: callback.href } });
}

async function decide(
  context: ServerContext,
  params: URLSearchParams,
  { subject, deny = false }: AuthorizationDecision,
): Promise<URL> {
  const { settings } = context;
  const client = settings.clients.get(params.get('client_id') ?? '');
  if (client === undefined) throw new ProtocolError('invalid_request', 'unknown client_id');
  const redirectUri = params.get('redirect_uri') ?? client.redirectUris?.[0];
  if (redirectUri === undefined || client.redirectUris?.includes(redirectUri) === false) {
    throw new ProtocolError('invalid_request', 'redirect_uri is not registered');
  }
  const responseType = params.get('response_type');
  const answer = new URLSearchParams({ iss: settings.issuer });
  const state = params.get('state');
  if (state !== null) answer.set('state', state);

  const user = settings.users[0];
  const nonce = params.get('nonce');
  const grant: TestGrant = {
    clientId: client.clientId,
    subject: subject ?? user?.subject ?? user?.username ?? 'user',
    scope: params.get('scope') ?? '',
    ...(nonce !== null && { nonce }),
    revoked: false,
  };
  if (deny) setAll(answer, { error: 'access_denied', error_description: 'the user refused' });
  else if (responseType === 'token') setAll(answer, { ...(await issueTokens(context, grant, false)) });
  else if (responseType !== 'code') setAll(answer, { error: 'unsupported_response_type' });
  else if (client.requirePkce === true && !params.has('code_challenge')) {
    setAll(answer, { error: 'invalid_request', error_description: 'code_challenge is required' });
  } else answer.set('code', issueCode(context, grant, params));

  const callback = new URL(redirectUri);
  if (responseType === 'token') callback.hash = answer.toString();
  else for (const [name, value] of answer) callback.searchParams.append(name, value);
  return callback;
}

function issueCode(context: ServerContext, grant: TestGrant, params: URLSearchParams): string {
  const challenge = params.get('code_challenge');
  const pending: PendingCode = {
    grant,
    redirectUri: params.get('redirect_uri'),
    ...(challenge !== null && {
      challenge: { value: challenge, method: params.get('code_challenge_method') ?? 'plain' },
    }),
    expiresAt: context.now() + context.settings.codeTtlSeconds,
    used: false,
  };
  const code = `code-${crypto.randomUUID()}`;
  context.codes.set(code, pending);
  return code;
}

function setAll(params: URLSearchParams, values: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(values)) params.set(name, String(value));
}

/**
 * The device authorization endpoint.
 *
 * @throws ProtocolError `invalid_client`.
 * @see RFC 8628 §3.2 https://www.rfc-editor.org/rfc/rfc8628#section-3.2
 */
export async function deviceAuthorizationEndpoint(
  context: ServerContext,
  request: EndpointRequest,
): Promise<Response> {
  const { settings, devices, now } = context;
  const { clientId } = await authenticateClient(context, request);
  const deviceCode = `device-${crypto.randomUUID()}`;
  const userCode = crypto.randomUUID().slice(0, 8).toUpperCase();
  devices.set(deviceCode, {
    ...{ clientId, userCode, scope: request.params.get('scope') ?? '', lastPolledAt: undefined },
    ...{ expiresAt: now() + settings.deviceCodeTtlSeconds, intervalSeconds: settings.deviceIntervalSeconds },
    decision: 'pending',
  });
  const verificationUri = `${settings.issuer}/device`;
  return Response.json({
    device_code: deviceCode,
    user_code: userCode,
    verification_uri: verificationUri,
    verification_uri_complete: `${verificationUri}?user_code=${userCode}`,
    expires_in: settings.deviceCodeTtlSeconds,
    interval: settings.deviceIntervalSeconds,
  });
}

/**
 * The introspection endpoint.
 *
 * @throws ProtocolError `invalid_client`.
 * @see RFC 7662 §2.2 https://www.rfc-editor.org/rfc/rfc7662#section-2.2
 */
export async function introspectionEndpoint(
  context: ServerContext,
  request: EndpointRequest,
): Promise<Response> {
  await authenticateClient(context, request);
  const token = context.ledger.findActive(request.params.get('token') ?? '');
  if (token === undefined) return Response.json({ active: false });
  return Response.json({
    active: true,
    scope: token.grant.scope,
    client_id: token.grant.clientId,
    sub: token.grant.subject,
    ...(token.kind === 'access_token' && { token_type: 'Bearer' }),
    iss: context.settings.issuer,
    iat: token.issuedAt,
    exp: token.expiresAt,
  });
}

/** The paths of the endpoints, relative to the issuer. */
export const endpointPaths = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  revocation: '/oauth/revoke',
  introspection: '/oauth/introspect',
  deviceAuthorization: '/oauth/device_authorization',
  jwks: '/jwks',
  resource: '/resource',
} as const;

/** An endpoint in faults and recorded requests; `metadata` is both well-known documents. */
export type EndpointName = keyof typeof endpointPaths | 'metadata';

/**
 * The server's metadata, for RFC 8414 and OpenID Connect Discovery.
 * @see RFC 8414 §3.2 https://www.rfc-editor.org/rfc/rfc8414#section-3.2
 */
export function metadataEndpoint({ settings: { issuer } }: ServerContext): Response {
  return Response.json({
    issuer,
    authorization_endpoint: issuer + endpointPaths.authorization,
    token_endpoint: issuer + endpointPaths.token,
    revocation_endpoint: issuer + endpointPaths.revocation,
    introspection_endpoint: issuer + endpointPaths.introspection,
    device_authorization_endpoint: issuer + endpointPaths.deviceAuthorization,
    jwks_uri: issuer + endpointPaths.jwks,
    response_types_supported: ['code', 'token'],
    grant_types_supported: [...grants.keys(), 'implicit'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    code_challenge_methods_supported: ['S256', 'plain'],
    token_endpoint_auth_methods_supported: [
      ...['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'client_secret_jwt', 'none'],
    ],
    authorization_response_iss_parameter_supported: true,
  });
}

/**
 * An API that requires an active access token, and responds with method, path, subject and scope.
 * @see RFC 6750 §3.1 https://www.rfc-editor.org/rfc/rfc6750#section-3.1
 */
export function resourceEndpoint(context: ServerContext, request: EndpointRequest): Response {
  const [scheme, value] = request.headers.get('authorization')?.split(' ') ?? [];
  const given = scheme?.toLowerCase() === 'bearer' ? value : request.params.get('access_token');
  if (!given) return unauthorized('Bearer realm="test"');
  const token = context.ledger.findActive(given);
  if (token?.kind !== 'access_token') return unauthorized('Bearer realm="test", error="invalid_token"');
  const { subject, scope, clientId } = token.grant;
  return Response.json({
    method: request.method,
    path: request.url.pathname,
    sub: subject,
    client_id: clientId,
    scope,
  });
}

function unauthorized(challenge: string): Response {
  return Response.json(
    { error: 'unauthorized' },
    { status: 401, headers: { 'www-authenticate': challenge } },
  );
}

/**
 * The revocation endpoint; a refresh token is revoked with its grant. Unknown tokens get the same
 * response.
 *
 * @throws ProtocolError `invalid_client`, `invalid_request`.
 * @see RFC 7009 §2.1 https://www.rfc-editor.org/rfc/rfc7009#section-2.1
 */
export async function revocationEndpoint(
  context: ServerContext,
  request: EndpointRequest,
): Promise<Response> {
  const client = await authenticateClient(context, request);
  const value = request.params.get('token');
  if (value === null) throw new ProtocolError('invalid_request', 'token is missing');
  const token = context.ledger.find(value);
  if (token?.grant.clientId === client.clientId) context.ledger.revoke(token);
  return new Response(null, { status: 200 });
}
