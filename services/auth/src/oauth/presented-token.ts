import { isAppError } from '@tollgate/kit/errors';
import { clientOfToken, credentialVersion, versionClaim } from '../keys/client-tokens.ts';
import type { JwtClaims } from '../keys/jwt.ts';
import { sessionExpiry } from '../sessions/expiry.ts';
import { findPresentedToken } from '../sessions/refresh.ts';
import type { Session } from '../sessions/store.ts';
import { isBanned, type User } from '../users/user.ts';
import type { GrantContext } from './grant.ts';

/** A token of a session. `isActive`: it can be used now. */
interface SessionToken {
  readonly user: User;
  readonly session: Session;
  readonly isActive: boolean;
}

export type PresentedToken =
  | ({ readonly kind: 'refresh' } & SessionToken)
  | ({ readonly kind: 'access'; readonly claims: JwtClaims } & SessionToken)
  /** A client got it for itself. */
  | { readonly kind: 'client'; readonly claims: JwtClaims };

/** Finds a token that can be used now. Refresh tokens of other clients are unknown. */
export async function findActiveToken(
  context: GrantContext,
  presented: { readonly token: string; readonly clientId: string },
): Promise<PresentedToken | undefined> {
  const found = await findToken(context, presented);
  return found?.kind === 'client' || found?.isActive === true ? found : undefined;
}

/**
 * Finds what a token stands for, also while its session exists and the token cannot be used: a
 * refresh token that was used before, or a token of a user who is banned.
 */
export async function findToken(
  context: GrantContext,
  { token, clientId }: { readonly token: string; readonly clientId: string },
): Promise<PresentedToken | undefined> {
  return token.includes('.') ? findAccessToken(context, token) : findRefreshToken(context, token, clientId);
}

async function findRefreshToken(
  context: GrantContext,
  refreshToken: string,
  clientId: string,
): Promise<PresentedToken | undefined> {
  try {
    const { user, session, token } = await findPresentedToken(context, { refreshToken, clientId });
    const isActive = !token.revoked && !hasEnded(context, user, session);
    return { kind: 'refresh', user, session, isActive };
  } catch (error) {
    if (isAppError(error) && error.httpStatus < 500) return undefined;
    throw error;
  }
}

async function findAccessToken(context: GrantContext, token: string): Promise<PresentedToken | undefined> {
  const { tokens, keys, nowMs, store } = context;
  const verified = tokens.verify(token, keys, nowMs());
  if (!verified.ok) return undefined;
  const { claims } = verified;
  const clientId = clientOfToken(claims);
  if (clientId !== undefined) {
    const client = await store.oauthClients.find(clientId);
    const isCurrent = client?.disabled === false && claims[versionClaim] === credentialVersion(client);
    return isCurrent ? { kind: 'client', claims } : undefined;
  }
  const { sub, session_id: sessionId } = claims;
  if (typeof sub !== 'string' || typeof sessionId !== 'string') return undefined;
  const found = await store.sessions.findWithUser(sub, sessionId);
  if (found?.session === undefined) return undefined;
  const { user, session } = found;
  return { kind: 'access', user, session, claims, isActive: !hasEnded(context, user, session) };
}

function hasEnded({ settings, nowMs }: GrantContext, user: User, session: Session): boolean {
  return isBanned(user, nowMs()) || sessionExpiry(session, settings, nowMs()) !== undefined;
}
