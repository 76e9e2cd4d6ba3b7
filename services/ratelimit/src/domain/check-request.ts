import type { RateLimitRequest } from './rate-limit-request.ts';
import { unitOfWire } from './wire-unit.ts';

/** Why a request cannot be decided, in the words that callers of envoyproxy/ratelimit know where it has any. */
export interface RequestProblem {
  readonly code: 'empty_domain' | 'no_descriptors' | 'too_many_descriptors' | 'invalid_override';
  readonly message: string;
}

/**
 * Most descriptors of a request. Envoy sends a handful; a thousand take some 20 ms, during which nobody else is
 * answered, and each is a counter of its own.
 */
export const maxDescriptors = 1_000;

/** Checks what the rules need to hold; undefined when the request is sound. */
export function checkRequest(request: RateLimitRequest): RequestProblem | undefined {
  if (request.domain === '') {
    return { code: 'empty_domain', message: 'rate limit domain must not be empty' };
  }
  if (request.descriptors.length === 0) {
    return { code: 'no_descriptors', message: 'rate limit descriptor list must not be empty' };
  }
  if (request.descriptors.length > maxDescriptors) {
    return {
      code: 'too_many_descriptors',
      message: `a request may have ${maxDescriptors} descriptors, this one has ${request.descriptors.length}`,
    };
  }
  for (const [i, { limit }] of request.descriptors.entries()) {
    if (limit !== undefined && unitOfWire(limit.unit) === undefined) {
      return {
        code: 'invalid_override',
        message: `descriptors[${i}].limit.unit must be one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR`,
      };
    }
  }
  return undefined;
}
