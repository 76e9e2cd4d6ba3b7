import type { IdentityState } from '../../ports/identity-states.ts';
import type { JsonObject } from '../json.ts';
import type { AssuranceLevel } from '../session.ts';
import type { CallerIdentity, LimitOverride } from './caller-identity.ts';
import type { TokenClaims, TokenSubject } from './token-subject.ts';

/** What may change while a token is good. */
export type IdentityTraits = Pick<IdentityState, 'role' | 'appMetadata' | 'isAnonymous'>;

const assuranceLevels: ReadonlySet<unknown> = new Set<AssuranceLevel>(['aal1', 'aal2', 'aal3']);

/** Longer names of plans are taken for none: roles are bounded the same, and both are sent to upstreams with every request. */
const maxPlanChars = 255;

/** The traits that a token itself tells. */
export function claimedTraits(claims: TokenClaims): IdentityTraits {
  const { role, app_metadata: appMetadata, is_anonymous: isAnonymous } = claims;
  return {
    role: typeof role === 'string' ? role : '',
    appMetadata: isJsonObject(appMetadata) ? appMetadata : {},
    isAnonymous: isAnonymous === true,
  };
}

/**
 * Puts together who calls. A token that names no user is one of an administrator's program; others without user, such as a key that a
 * web page carries, say nothing of who calls and count as anonymous.
 */
export function identityOf(
  token: { readonly subject: TokenSubject; readonly claims: TokenClaims },
  traits: IdentityTraits,
  options: {
    readonly defaultPlan: string;
    readonly adminRoles: readonly string[];
    readonly limit: LimitOverride | undefined;
  },
): CallerIdentity {
  const { userId, sessionId } = token.subject;
  const { role, isAnonymous } = traits;
  return {
    userId,
    sessionId,
    role,
    plan: planOf(traits.appMetadata) ?? options.defaultPlan,
    aal: isAssuranceLevel(token.claims.aal) ? token.claims.aal : 'aal1',
    isAnonymous: isAnonymous || (userId === undefined && !options.adminRoles.includes(role)),
    limit: options.limit,
  };
}

function planOf({ plan }: JsonObject): string | undefined {
  return typeof plan === 'string' && plan !== '' && plan.length <= maxPlanChars ? plan : undefined;
}

function isAssuranceLevel(claim: unknown): claim is AssuranceLevel {
  return assuranceLevels.has(claim);
}

/** Claims were parsed from JSON: an object in them holds nothing else. */
function isJsonObject(claim: unknown): claim is JsonObject {
  return typeof claim === 'object' && claim !== null && !Array.isArray(claim);
}
