import type { CallerIdentity } from './caller-identity.ts';
import type { RouteDemand } from './route-rules.ts';

/** What a caller lacks. */
export type UnmetDemand = 'role_not_allowed' | 'insufficient_aal' | 'anonymous_not_allowed';

/** The first thing that a caller lacks for a route; undefined when nothing. */
export function unmetDemand(
  { roles, aal, anonymous }: Extract<RouteDemand, { access: 'authenticated' }>,
  identity: CallerIdentity,
): UnmetDemand | undefined {
  if (roles !== undefined && !roles.includes(identity.role)) return 'role_not_allowed';
  // Their names sort as they are meant: aal1, aal2, aal3.
  if (identity.aal < aal) return 'insufficient_aal';
  return identity.isAnonymous && !anonymous ? 'anonymous_not_allowed' : undefined;
}
