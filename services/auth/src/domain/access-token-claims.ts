import type { JsonObject } from './json.ts';
import type { Session } from './session.ts';
import type { User } from './user.ts';

/** The settings that access tokens depend on. */
export interface AccessTokenPolicy {
  readonly jwtExpMs: number;
  /** Left out when empty. */
  readonly jwtIssuer: string;
}

/** What an access token says of a user and a session; times in seconds since 1970. */
export function accessTokenClaims(
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
