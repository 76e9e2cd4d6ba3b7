import type { JsonObject } from './json.ts';
import type { Session } from './session.ts';
import type { User } from './user.ts';

/** The settings that access tokens depend on. */
export interface AccessTokenPolicy {
  readonly jwtExpMs: number;
  /** Left out when empty. */
  readonly jwtIssuer: string;
}

/**
 * With more than this a token does not fit into the headers that servers take, and nobody could use it. Metadata have a bound of their
 * own; some that were there before, or were written by several requests at once, may be larger.
 */
const maxClaimsBytes = 10 * 1024;

/**
 * What an access token says of a user and a session; times in seconds since 1970. Metadata that do not fit are left out: first what the
 * user says, then, but for the providers, what the operator says.
 */
export function accessTokenClaims(
  user: User,
  session: Pick<Session, 'id' | 'aal' | 'methods'>,
  { policy, nowMs }: { readonly policy: AccessTokenPolicy; readonly nowMs: number },
): JsonObject & { readonly exp: number } {
  const claims = allClaims(user, session, { policy, nowMs });
  if (fits(claims)) return claims;
  const withoutOwn = { ...claims, user_metadata: {} };
  if (fits(withoutOwn)) return withoutOwn;
  const { provider = '', providers = [] } = user.appMetadata;
  return { ...withoutOwn, app_metadata: { provider, providers } };
}

function fits(claims: JsonObject): boolean {
  return Buffer.byteLength(JSON.stringify(claims)) <= maxClaimsBytes;
}

function allClaims(
  user: User,
  session: Pick<Session, 'id' | 'aal' | 'methods'>,
  { policy, nowMs }: { readonly policy: AccessTokenPolicy; readonly nowMs: number },
): JsonObject & { readonly exp: number } {
  const issuedAt = Math.floor(nowMs / 1000);
  return {
    ...(policy.jwtIssuer !== '' && { iss: policy.jwtIssuer }),
    sub: user.id,
    aud: user.aud,
    exp: issuedAt + Math.floor(policy.jwtExpMs / 1000),
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
  };
}
