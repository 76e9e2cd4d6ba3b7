import { create } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import { HeaderValueSchema } from '@tollgate/proto/envoy/config/core/v3/base';
import {
  type RateLimitResponse,
  type RateLimitResponse_DescriptorStatus,
  RateLimitResponse_DescriptorStatusSchema,
  RateLimitResponse_RateLimitSchema,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import type { Decision, DescriptorStatus } from '../domain/decision.ts';
import { wireOfUnit } from '../domain/wire-unit.ts';

/** A decision as Envoy's message, which gRPC sends in binary and `/json` as JSON. */
export function toMessage(decision: Decision): RateLimitResponse {
  const message = create(RateLimitResponseSchema);
  message.overallCode = decision.overallCode;
  message.statuses = decision.statuses.map(toStatus);
  for (const { key, value } of decision.responseHeaders) {
    message.responseHeadersToAdd.push(create(HeaderValueSchema, { key, value }));
  }
  if (decision.dynamicMetadata !== undefined) {
    // The rule language's JSON is read-only; the message's type is not, but nothing writes to it any more.
    message.dynamicMetadata = decision.dynamicMetadata as NonNullable<RateLimitResponse['dynamicMetadata']>;
  }
  return message;
}

function toStatus(status: DescriptorStatus): RateLimitResponse_DescriptorStatus {
  const message = create(RateLimitResponse_DescriptorStatusSchema);
  message.code = status.code;
  message.limitRemaining = status.limitRemaining;
  if (status.currentLimit !== undefined) {
    const limit = create(RateLimitResponse_RateLimitSchema);
    limit.requestsPerUnit = status.currentLimit.requestsPerUnit;
    limit.unit = wireOfUnit(status.currentLimit.unit);
    limit.name = status.currentLimit.name;
    message.currentLimit = limit;
  }
  if (status.secondsUntilReset !== undefined) {
    const duration = create(DurationSchema);
    duration.seconds = BigInt(status.secondsUntilReset);
    message.durationUntilReset = duration;
  }
  return message;
}
