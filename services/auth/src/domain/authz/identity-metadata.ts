import type { JsonObject } from '../json.ts';
import type { CallerIdentity } from './caller-identity.ts';

/**
 * What rate limits see of a caller: Envoy's dynamic metadata, in the namespace `envoy.filters.http.ext_authz`. Empty without an
 * identity, so that a descriptor's `default_value` holds.
 */
export function identityMetadata(identity: CallerIdentity | undefined): JsonObject {
  if (identity === undefined) return {};
  const { userId, sessionId, role, plan, aal, isAnonymous, limit } = identity;
  return {
    ...(userId !== undefined && { user_id: userId }),
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(role !== '' && { role }),
    plan,
    aal,
    anonymous: isAnonymous,
    ...(limit && { limit: { requests_per_unit: limit.requestsPerUnit, unit: limit.unit } }),
  };
}
