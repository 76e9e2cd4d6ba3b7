import { type CallerIdentity, noClaims, ownIssuer } from '@tollgate/policies/decide/caller';
import type { LimitOverride } from '@tollgate/policies/decide/limit-override';
import type { CallerSpec } from './format.ts';

const levels = { AAL1: 'aal1', AAL2: 'aal2', AAL3: 'aal3' } as const;

/** The identity that the auth server would have for a caller. */
export function toIdentity(spec: CallerSpec): CallerIdentity {
  const { user, apiKey, client, role = 'authenticated', plan = 'free', scopes, organization } = spec;
  const { organizationRole, assurance = 'AAL1', anonymous = false, audiences = [], claims, limit } = spec;
  const kind = apiKey !== undefined ? 'api_key' : user === undefined ? 'client' : 'user';
  const own: LimitOverride | undefined = limit && {
    requestsPerUnit: limit.requests,
    unit: limit.per.toUpperCase() as LimitOverride['unit'], // the units have the same names
  };
  return {
    ...{ kind, role, plan, audiences },
    userId: user,
    sessionId: kind === 'user' ? (spec.session ?? `session of ${user}`) : undefined,
    key: apiKey === undefined ? undefined : { id: apiKey, limit: own },
    clientId: client,
    orgId: organization,
    orgRole: organizationRole,
    scope: scopes?.join(' '),
    aal: levels[assurance],
    isAnonymous: anonymous,
    issuer: kind === 'api_key' ? undefined : (spec.issuer ?? ownIssuer),
    claims: claims ?? noClaims,
    limit: apiKey === undefined ? own : undefined,
    orgLimit: undefined,
  };
}
