import type { Descriptor, RateLimitRequest } from './rate-limit-request.ts';

/**
 * How many hits a descriptor adds: its own number where it has one (0 looks without counting), else the
 * request's, at least 1.
 *
 * Hits given back (`is_negative_hits`) are not supported: they look, so that a refund at least takes nothing.
 * Numbers above 2^53 lose their last digits, which no limit (at most 2^32 - 1) can tell apart.
 */
export function hitsAddend(request: RateLimitRequest, descriptor: Descriptor): number {
  if (descriptor.isNegativeHits === true) {
    return 0;
  }
  if (descriptor.hitsAddend !== undefined) {
    return Number(descriptor.hitsAddend);
  }
  return Math.max(1, request.hitsAddend);
}
