import type { JsonObject } from '@tollgate/kit/json';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { keyClaims } from '../keys/bound-tokens.ts';
import { issuerUrl, signJwt, tokenAudience, tokenIssuer } from '../keys/jwt.ts';
import type { User } from '../users/user.ts';
import type { SessionsContext } from './context.ts';
import type { Session, SessionClient } from './store.ts';

export type ClaimedSession = Pick<Session, 'id' | 'aal' | 'methods' | 'organization' | 'client'>;

export interface AccessToken {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  /** Seconds since 1970. */
  readonly expiresAt: number;
}

/**
 * Signs an access token. Runs before the session is written: a hook may reject the request.
 *
 * @throws AppError of the hook for access tokens
 */
export async function signAccessToken(
  context: SessionsContext,
  request: ClaimsRequest,
  metadata: RequestMetadata,
): Promise<AccessToken> {
  const claims = await createClaims(context, request, metadata);
  return {
    accessToken: signJwt(claims, context.keys, request.session.client?.tokenType ?? 'JWT'),
    expiresInSeconds: claims.exp - Math.floor(metadata.nowMs / 1000),
    expiresAt: claims.exp,
  };
}

interface ClaimsRequest {
  readonly user: User;
  readonly session: ClaimedSession;
  /** Method of this sign-in, or `token_refresh`. */
  readonly method: string;
  /** The latest expiry, in seconds since 1970. A hook cannot set a later one. */
  readonly maxExpiresAt?: number;
  /** The service that acts for the user. A hook cannot remove it, or its `client_id`. */
  readonly actor?: JsonObject;
  /** The key that the token is bound to. A hook cannot change it. */
  readonly thumbprint?: string | undefined;
}

/** Access of a token within that of its session. Absent members: all of it. */
export interface TokenAccess {
  readonly scope?: string | undefined;
  readonly details?: SessionClient['details'] | undefined;
}

export function narrowClient(client: SessionClient, { scope, details }: TokenAccess): SessionClient {
  return { ...client, scope: scope ?? client.scope, details: details ?? client.details };
}

/**
 * Creates the claims of an access token.
 *
 * @throws AppError of the hook for access tokens
 */
export async function createClaims(
  context: SessionsContext,
  { user, session, method, maxExpiresAt = Number.POSITIVE_INFINITY, actor, thumbprint }: ClaimsRequest,
  metadata: RequestMetadata,
): Promise<Claims> {
  const { hooks, settings } = context;
  const { nowMs } = metadata;
  const profile =
    session.client?.tokenType === 'at+jwt' ? { iss: issuerUrl(settings), jti: context.random.uuid() } : {};
  const own = limitClaims({ ...accessTokenClaims(user, session, { settings, nowMs }), ...profile }, user);
  const customized = hooks.enabled.has('CUSTOM_ACCESS_TOKEN')
    ? await customizeClaims(context, { claims: own, method }, metadata)
    : own;
  const claims = {
    ...customized,
    exp: Math.min(customized.exp, maxExpiresAt),
    ...(actor && { act: actor, ...(own.client_id !== undefined && { client_id: own.client_id }) }),
    ...keyClaims(thumbprint),
  };
  if (customized !== own && !fits(claims))
    throw errors.hook_payload_over_size_limit({
      message: `The claims exceed the size limit of ${maxClaimsBytes} bytes`,
    });
  return claims;
}

type AccessTokenClaims = JsonObject & { readonly sub: string; readonly exp: number };

function accessTokenClaims(
  user: User,
  session: ClaimedSession,
  {
    settings,
    nowMs,
  }: {
    readonly settings: Settings;
    readonly nowMs: number;
  },
): AccessTokenClaims {
  const issuedAt = Math.floor(nowMs / 1000);
  const issuer = tokenIssuer(settings);
  return {
    ...(issuer !== '' && { iss: issuer }),
    sub: user.id,
    // RFC 8707 §2.2.
    aud: session.client?.resource ?? tokenAudience(user.aud, settings),
    exp: issuedAt + Math.floor(settings.jwtExpMs / 1000),
    iat: issuedAt,
    email: user.email,
    phone: user.phone,
    app_metadata: user.appMetadata,
    user_metadata: user.userMetadata,
    role: user.role,
    aal: session.aal,
    amr: session.methods.map(({ method, at }) => ({ method, timestamp: Math.floor(at.getTime() / 1000) })),
    session_id: session.id,
    is_anonymous: user.isAnonymous,
    ...(session.client && clientClaims(session.client)),
    ...(settings.organizationsEnabled && organizationClaims(session)),
  };
}

/** @see RFC 9068 §2.2, RFC 9396 §9.1 */
function clientClaims({ identifier, scope, details }: SessionClient): JsonObject {
  return {
    client_id: identifier,
    scope,
    ...(details.length > 0 && { authorization_details: details }),
  };
}

/** The claims of the active organization. Checks of the gateway compare them with the database. */
function organizationClaims({ organization }: ClaimedSession): JsonObject {
  return organization === undefined
    ? {}
    : { org_id: organization.id, org_role: organization.role, org_slug: organization.slug };
}

/**
 * A larger token does not fit into the request headers that servers accept. Writes of metadata are
 * limited too, but concurrent writes and rows of earlier versions can exceed that limit.
 */
const maxClaimsBytes = 10 * 1024;

/**
 * Drops metadata that do not fit: the user's own first, then the application's, except providers.
 */
function limitClaims(claims: AccessTokenClaims, { appMetadata }: User): AccessTokenClaims {
  if (fits(claims)) return claims;
  const withoutOwn = { ...claims, user_metadata: {} };
  if (fits(withoutOwn)) return withoutOwn;
  const { provider = '', providers = [] } = appMetadata;
  return { ...withoutOwn, app_metadata: { provider, providers } };
}

function fits(claims: JsonObject): boolean {
  return Buffer.byteLength(JSON.stringify(claims)) <= maxClaimsBytes;
}

type Claims = JsonObject & { readonly exp: number };

/** Lets a hook replace the claims of an access token. @throws AppError the error of the hook */
async function customizeClaims(
  { hooks }: SessionsContext,
  { claims, method }: { readonly claims: Claims & { readonly sub: string }; readonly method: string },
  metadata: RequestMetadata,
): Promise<Claims> {
  const reply = await hooks.call(
    'CUSTOM_ACCESS_TOKEN',
    { user_id: claims.sub, claims, authentication_method: method },
    metadata,
  );
  return reply.claims as Claims; // as the schema of the reply requires
}
