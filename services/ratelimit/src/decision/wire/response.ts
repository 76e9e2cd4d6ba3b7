import { create } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import type { JsonObject } from '@tollgate/kit/json';
import { HeaderValueSchema } from '@tollgate/proto/envoy/config/core/v3/base';
import {
  type RateLimitResponse,
  type RateLimitResponse_DescriptorStatus,
  RateLimitResponse_DescriptorStatusSchema,
  RateLimitResponse_RateLimitSchema,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import type { Unit } from '@tollgate/rules/rule-set';
import { unitToWire } from './request.ts';

/** Numbers of the wire. @see envoy.service.ratelimit.v3.RateLimitResponse.Code */
export const Code = { OK: 1, OVER_LIMIT: 2 } as const;
export type Code = (typeof Code)[keyof typeof Code];

/** @see envoy.service.ratelimit.v3.RateLimitResponse.RateLimit */
interface CurrentLimit {
  readonly requestsPerUnit: number;
  /** Undefined with a period, which the wire cannot say. */
  readonly unit?: Unit | undefined;
  /** Name of the rule's `rate_limit`, or empty. */
  readonly name: string;
}

/** @see envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus */
export interface DescriptorStatus {
  readonly code: Code;
  /** Absent without a rule, and for unlimited and replaced rules. */
  readonly currentLimit?: CurrentLimit;
  readonly limitRemaining: number;
  /** Whether its rule is in quota mode. Not sent. */
  readonly quota: boolean;
  /** Whole seconds, from 1 to the length of the unit; absent without `currentLimit`. */
  readonly secondsUntilReset?: number;
  /** Whether the request took slots of a concurrency limit, and must release them. Not sent. */
  readonly tookSlots?: boolean | undefined;
}

export interface Header {
  readonly key: string;
  readonly value: string;
}

export interface Decision {
  readonly overallCode: Code;
  /** Statuses in the order of the request's descriptors. */
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeaders: readonly Header[];
  readonly dynamicMetadata?: JsonObject;
  /** The policies that decided because the store failed. Not sent, except in the metadata. */
  readonly storeFailure?: string;
}

/** The decision as Envoy's message, for gRPC and `/json`. */
export function toMessage(decision: Decision): RateLimitResponse {
  const message = create(RateLimitResponseSchema);
  message.overallCode = decision.overallCode;
  message.statuses = decision.statuses.map(toStatusMessage);
  for (const { key, value } of decision.responseHeaders) {
    message.responseHeadersToAdd.push(create(HeaderValueSchema, { key, value }));
  }
  if (decision.dynamicMetadata !== undefined) {
    // Read-only in the rules, not so in the type of the message; nothing writes to it.
    message.dynamicMetadata = decision.dynamicMetadata as NonNullable<RateLimitResponse['dynamicMetadata']>;
  }
  return message;
}

function toStatusMessage(status: DescriptorStatus): RateLimitResponse_DescriptorStatus {
  const message = create(RateLimitResponse_DescriptorStatusSchema);
  message.code = status.code;
  message.limitRemaining = status.limitRemaining;
  if (status.currentLimit !== undefined) {
    const limit = create(RateLimitResponse_RateLimitSchema);
    limit.requestsPerUnit = status.currentLimit.requestsPerUnit;
    limit.unit = unitToWire(status.currentLimit.unit);
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
