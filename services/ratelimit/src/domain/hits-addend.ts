import type { Descriptor, RateLimitRequest } from './rate-limit-request.ts';

/**
 * One more than the largest limit: further hits change no decision. Counted in full they could bring a counter to the
 * end of Redis's 64 bits, where it fails every request, and failed requests are what Envoy lets pass.
 */
const mostHits = 2 ** 32;

/**
 * How many hits a descriptor adds: its own number where it has one (0 looks without counting), else the
 * request's, at least 1.
 *
 * Hits given back (`is_negative_hits`) are not supported: they look, so that a refund at least takes nothing.
 */
export function hitsAddend(request: RateLimitRequest, descriptor: Descriptor): number {
  if (descriptor.isNegativeHits === true) {
    return 0;
  }
  if (descriptor.hitsAddend !== undefined) {
    return Math.min(Number(descriptor.hitsAddend), mostHits);
  }
  return Math.max(1, request.hitsAddend);
}
