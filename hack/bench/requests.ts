import { create, toBinary } from '@bufbuild/protobuf';
import { RateLimitRequestSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { benchDomain, tenantCount, tenantName } from './rules-file.ts';

/** The method that the bench calls. */
export const shouldRateLimitPath = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

/**
 * Serializes `keyCount` different requests of two descriptors: the user, and the user within a tenant. Both have a
 * limit and a counter of their own for every user, so that there are twice as many counters as keys.
 */
export function writeRequests(keyCount: number): Uint8Array[] {
  return Array.from({ length: keyCount }, (_, i) => {
    const user = { key: 'user', value: `user-${String(i).padStart(6, '0')}` };
    const tenant = { key: 'tenant', value: tenantName(i % tenantCount) };
    const request = create(RateLimitRequestSchema, {
      domain: benchDomain,
      descriptors: [{ entries: [user] }, { entries: [tenant, user] }],
    });
    return toBinary(RateLimitRequestSchema, request);
  });
}
