import { fromJsonString } from '@bufbuild/protobuf';
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { errors } from '../../errors.ts';

/**
 * Reads a request in proto3 JSON from the bytes of a body. No body at all is an empty one, which is not JSON.
 *
 * @throws AppError `malformed_request` that says what is wrong.
 */
export function readJsonRequest(body: unknown): RateLimitRequest {
  try {
    return fromJsonString(RateLimitRequestSchema, body instanceof Uint8Array ? decodeUtf8(body) : '');
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw errors.malformed_request({
      message: `${errors.malformed_request.definition.message}: ${reason}`,
      cause,
    });
  }
}

/** Throws where a lenient decoder would make another text, and so another counter, of it. */
function decodeUtf8(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}
