import type { JsonObject } from '@tollgate/kit/json';
import { type SessionLimits, sessionExpiry } from '../sessions/expiry.ts';
import { isBanned } from '../users/user.ts';
import type { Token } from './caller.ts';
import type { StoredValues } from './claim-values.ts';
import type { IdentityState } from './identity-cache.ts';

/** The values as of when the token was issued, which has no plan and limit of an organization. */
export function claimedValues({ claims, orgId: id }: Pick<Token, 'claims' | 'orgId'>): StoredValues {
  const { app_metadata: appMetadata, is_anonymous: isAnonymous } = claims;
  const text = (name: string) => (typeof claims[name] === 'string' ? claims[name] : '');
  const organization = { role: text('org_role'), slug: text('org_slug'), plan: undefined, limit: undefined };
  return {
    organization: id === undefined ? undefined : { id, ...organization },
    role: text('role'),
    appMetadata: isJsonObject(appMetadata) ? appMetadata : {},
    isAnonymous: isAnonymous === true,
  };
}

/** Claims were parsed from JSON, so an object in them is a JSON object. */
function isJsonObject(claim: unknown): claim is JsonObject {
  return typeof claim === 'object' && claim !== null && !Array.isArray(claim);
}

/** Why a token was invalidated after it was issued. */
export function findStateProblem(
  state: IdentityState | undefined,
  token: Token,
  { limits, nowMs }: { readonly limits: SessionLimits; readonly nowMs: number },
): 'user_not_found' | 'user_banned' | 'session_not_found' | 'session_expired' | undefined {
  if (state === undefined) return 'user_not_found';
  if (isBanned(state, nowMs)) return 'user_banned';
  if (token.sessionId === undefined) return undefined;
  const { session } = state;
  if (session === undefined) return 'session_not_found';
  const { createdAt, notAfter } = session;
  const { iat } = token.claims;
  // Tokens are issued at sign-in and at each refresh. A token older than the inactivity timeout
  // must be refreshed, which succeeds if the session is still active.
  const refreshedAt = typeof iat === 'number' ? new Date(iat * 1000) : undefined;
  const expiry = sessionExpiry({ createdAt, refreshedAt, notAfter }, limits, nowMs);
  return expiry === undefined ? undefined : 'session_expired';
}
