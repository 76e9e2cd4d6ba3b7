import type { Entry } from '@tollgate/rules/match';

/**
 * A question: may this much more happen?
 *
 * The shape is that of the decoded wire message, so that none has to be copied on the hot path.
 *
 * @see envoy.service.ratelimit.v3.RateLimitRequest
 */
export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** Hits for descriptors without a number of their own; 0 counts as 1. */
  readonly hitsAddend: number;
}

/** One line of entries that rules are matched with. */
export interface Descriptor {
  readonly entries: readonly Entry[];
  /** A limit the caller brings; it replaces whatever rule matches. */
  readonly limit?: LimitOverride | undefined;
  /** Hits of this descriptor alone; 0 looks without counting. Unsigned 64-bit. */
  readonly hitsAddend?: bigint | undefined;
  /** The caller wants hits back. */
  readonly isNegativeHits?: boolean | undefined;
}

/** @see envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.RateLimitOverride */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** Number of the wire's unit: 1 second … 7 week. */
  readonly unit: number;
}
