import { type CallerIdentity, noClaims } from '@tollgate/policies/decide/caller';

/** A user of Tollgate with these attributes. */
export function callerIdentity(own: Partial<CallerIdentity> = {}): CallerIdentity {
  return {
    kind: 'user',
    userId: '8fba2b4c-1a5b-4bd0-9c6b-2c8f8a3a1111',
    sessionId: '11111111-2222-4333-8444-555555555555',
    key: undefined,
    clientId: undefined,
    orgId: undefined,
    orgRole: undefined,
    role: 'authenticated',
    plan: 'free',
    scope: undefined,
    audiences: [],
    aal: 'aal1',
    isAnonymous: false,
    issuer: 'tollgate',
    claims: noClaims,
    limit: undefined,
    orgLimit: undefined,
    ...own,
  };
}
