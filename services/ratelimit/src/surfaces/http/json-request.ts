import { fromJsonString } from '@bufbuild/protobuf';
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { errors } from '../../errors.ts';

/**
 * Reads a request in proto3 JSON from the text of a body.
 *
 * @throws AppError `malformed_request` that says what is wrong.
 */
export function readJsonRequest(body: unknown): RateLimitRequest {
  try {
    return fromJsonString(RateLimitRequestSchema, typeof body === 'string' ? body : '');
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw errors.malformed_request({
      message: `${errors.malformed_request.definition.message}: ${reason}`,
      cause,
    });
  }
}
