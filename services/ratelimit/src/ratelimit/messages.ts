import { create, fromBinary, fromJsonString } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import { HeaderValueSchema } from '@tollgate/proto/envoy/config/core/v3/base';
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
  type RateLimitResponse,
  type RateLimitResponse_DescriptorStatus,
  RateLimitResponse_DescriptorStatusSchema,
  RateLimitResponse_RateLimitSchema,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { errors } from '../errors.ts';
import { wireOfUnit } from './request.ts';
import type { Decision, DescriptorStatus } from './response.ts';

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

/**
 * Reads a request in proto3 JSON from a body, bytes or text. No body at all is an empty one, which is not JSON.
 *
 * @throws AppError `malformed_request` that says what is wrong.
 */
export function readJsonRequest(body: unknown): RateLimitRequest {
  try {
    const request = fromJsonString(RateLimitRequestSchema, textOf(body));
    checkTexts(request);
    return request;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw errors.malformed_request({
      message: `${errors.malformed_request.definition.message}: ${reason}`,
      cause,
    });
  }
}

/** A lone surrogate, `"\ud800"`, becomes U+FFFD in the store, so that all of them would share a counter. */
function checkTexts({ domain, descriptors }: RateLimitRequest): void {
  const entries = descriptors.flatMap(({ entries }) => entries);
  const texts = [domain, ...entries.flatMap(({ key, value }) => [key, value])];
  if (!texts.every((text) => text.isWellFormed())) {
    throw new Error('a text is not well-formed Unicode');
  }
}

function textOf(body: unknown): string {
  if (body instanceof Uint8Array) {
    // Throws where a lenient decoder would make another text, and so another counter, of it. A byte order mark is kept,
    // so that it is no JSON.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  }
  return typeof body === 'string' ? body : '';
}

/**
 * Decodes a request in binary.
 *
 * @throws AppError `malformed_request`.
 */
export function decodeRequest(bytes: Uint8Array): RateLimitRequest {
  try {
    return fromBinary(RateLimitRequestSchema, bytes);
  } catch (cause) {
    throw errors.malformed_request({ cause });
  }
}
