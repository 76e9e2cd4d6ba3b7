import { fromBinary, toBinary } from '@bufbuild/protobuf';
import type { UnaryHandler } from '@tollgate/grpc-server/call';
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import type { Decide } from '../../decide/create-decider.ts';
import { errors } from '../../errors.ts';
import { toMessage } from '../decision-message.ts';

/** Path of the call. @see envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit */
export const shouldRateLimitPath = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

/** Makes the handler of ShouldRateLimit. */
export function createShouldRateLimit(decide: Decide): UnaryHandler {
  return async (bytes, context) =>
    toBinary(RateLimitResponseSchema, toMessage(await decide(decode(bytes), context)));
}

function decode(bytes: Uint8Array): RateLimitRequest {
  try {
    return fromBinary(RateLimitRequestSchema, bytes);
  } catch (cause) {
    throw errors.malformed_request({ cause });
  }
}
