import type { IdentityState } from '../../ports/identity-states.ts';
import { type SessionLimits, sessionEnd } from '../session.ts';
import { isBanned } from '../user.ts';
import type { TokenClaims, TokenSubject } from './token-subject.ts';

/** Why a token that is good by itself is not good any more. */
export type StateProblem = 'user_not_found' | 'user_banned' | 'session_not_found' | 'session_expired';

/** What has happened since the token was issued that ends it; undefined when nothing has. */
export function stateProblem(
  state: IdentityState | undefined,
  token: { readonly subject: TokenSubject; readonly claims: TokenClaims },
  { limits, nowMs }: { readonly limits: SessionLimits; readonly nowMs: number },
): StateProblem | undefined {
  if (state === undefined) return 'user_not_found';
  if (isBanned(state, nowMs)) return 'user_banned';
  if (token.subject.sessionId === undefined) return undefined;
  const { session } = state;
  if (session === undefined) return 'session_not_found';
  const { createdAt, notAfter } = session;
  // A token is issued with a sign-in or a refresh. So one older than the longest pause is to be refreshed, which the session may outlive.
  const refreshedAt = issuedAt(token.claims);
  const end = sessionEnd({ createdAt, refreshedAt, notAfter }, limits, nowMs);
  return end === undefined ? undefined : 'session_expired';
}

function issuedAt({ iat }: TokenClaims): Date | undefined {
  return typeof iat === 'number' ? new Date(iat * 1000) : undefined;
}
