import type { JsonObject } from '@tollgate/kit/json';
import { type CallerIdentity, ownIssuer } from '@tollgate/policies/decide/caller';
import { type LimitOverride, parseLimitOverride } from '@tollgate/policies/decide/limit-override';
import type { ClaimMapping } from '@tollgate/policies/routes-file/claim-mapping';
import type { Settings } from '../config/settings.ts';
import { machineGrants, versionClaim } from '../keys/client-tokens.ts';
import type { JwtClaims } from '../keys/jwt.ts';
import { claimAudiences, claimText, maxScopeChars } from './claim-text.ts';
import { readAdded, readAttribute } from './claim-values.ts';
import type { ClientState } from './client-state.ts';

/** A verified token that a client got for itself. */
interface ClientToken {
  /** A UUID in lower case. */
  readonly clientId: string;
  readonly claims: JwtClaims;
  readonly mapping: ClaimMapping;
}

/** Why the token of an existing client was invalidated after it was issued. */
export function findClientProblem(
  state: ClientState,
  claims: JwtClaims,
  { organizationsEnabled }: Pick<Settings, 'organizationsEnabled'>,
): string | undefined {
  if (state.disabled) return 'the client is disabled';
  if (!machineGrants.some((grant) => state.grantTypes.includes(grant)))
    return 'the client may no longer get tokens for itself';
  // Its limit and plan would be missing.
  if (organizationsEnabled && state.orgId !== undefined && state.organization === undefined)
    return 'the organization of the client does not exist';
  return claims[versionClaim] === state.version ? undefined : 'the client has other credentials now';
}

/** The caller of a client's token. Without a state, the token is all that is known of it. */
export function clientIdentity(
  { clientId, claims, mapping }: ClientToken,
  state: ClientState | undefined,
  defaultPlan: string,
): CallerIdentity {
  const values = { claims, stored: undefined };
  const read = (name: Parameters<typeof readAttribute>[1]) => readAttribute(mapping, name, values);
  return {
    kind: 'client',
    userId: undefined,
    sessionId: undefined,
    key: undefined,
    clientId,
    orgId: state?.orgId ?? read('org_id'),
    orgRole: read('org_role'),
    role: state?.role ?? '',
    plan: state?.plan ?? state?.organization?.plan ?? read('plan') ?? defaultPlan,
    audiences: claimAudiences(claims),
    scope: currentScope(claimText(claims.scope, maxScopeChars), state),
    aal: 'aal1',
    isAnonymous: false,
    issuer: ownIssuer,
    claims: readAdded(mapping, values),
    limit: readLimit(state?.limit),
    orgLimit: readLimit(state?.organization?.limit),
  };
}

/** Writes are validated: an invalid limit is of another program. */
function readLimit(limit: JsonObject | undefined): LimitOverride | undefined {
  const parsed = parseLimitOverride(limit);
  return parsed.ok ? parsed.limit : undefined;
}

/** The scopes of the token that the client may still have. */
function currentScope(granted: string | undefined, state: ClientState | undefined): string | undefined {
  if (granted === undefined || state === undefined) return granted;
  const scopes = granted.split(' ').filter((scope) => state.scopes.includes(scope));
  return scopes.length === 0 ? undefined : scopes.join(' ');
}
