import { fromJsonString } from '@bufbuild/protobuf';
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { errors } from '../../errors.ts';

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
