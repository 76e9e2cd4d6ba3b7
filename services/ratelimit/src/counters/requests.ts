import { errors, invalidRequest } from '../errors.ts';
import { parseJsonRequest, type RateLimitRequest, validateRequest } from '../ratelimit/request.ts';

/** Each descriptor may be compared with many rules. */
const maxDescriptors = 100;

/**
 * Parses a RateLimitRequest in proto3 JSON.
 *
 * @throws AppError with the reason.
 */
export function parseRequest(body: Buffer): RateLimitRequest {
  const request = parseJsonRequest(body);
  const problem = validateRequest(request);
  if (problem !== undefined) throw invalidRequest(problem);
  if (request.descriptors.length > maxDescriptors) {
    throw errors.too_many_descriptors({
      message: `at most ${maxDescriptors} descriptors are possible at once`,
    });
  }
  return request;
}
