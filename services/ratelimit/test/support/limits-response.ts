import { anyPack } from '@bufbuild/protobuf/wkt';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { toMessage } from '@tollgate/rules/rule-message';
import type { TestResponse } from '@tollgate/testkit/ads-server';

const typeUrl = `type.googleapis.com/${RateLimitConfigSchema.typeName}`;

/** A response with resources given as domain and limit per hour for the key `k`. */
export function limitsResponse(version: string, limits: Readonly<Record<string, number>>): TestResponse {
  const resources = Object.entries(limits).map(([domain, requestsPerUnit]) => {
    const descriptors = [{ key: 'k', rateLimit: { unit: 'hour', requestsPerUnit } }];
    return anyPack(RateLimitConfigSchema, toMessage({ source: '', domain, descriptors }));
  });
  return { versionInfo: version, typeUrl, resources };
}
