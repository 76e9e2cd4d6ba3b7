import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { DiscoveryResponse } from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import {
  type RateLimitConfig,
  RateLimitConfigSchema,
} from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';

/** The names of the resources of a response, in its order. */
export function namesIn(response: DiscoveryResponse): string[] {
  return configsIn(response).map(({ name }) => name);
}

/** The resources of a response. */
export function configsIn({ resources }: DiscoveryResponse): RateLimitConfig[] {
  return resources.flatMap((any) => anyUnpack(any, RateLimitConfigSchema) ?? []);
}
