import type { Entry } from '@tollgate/rules/match';
import type { Unit } from '@tollgate/rules/rule-set';

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

/**
 * The units by their number on the wire; WEEK came last and so follows YEAR.
 *
 * @see envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit
 */
const units: readonly (Unit | undefined)[] = [
  undefined,
  'second',
  'minute',
  'hour',
  'day',
  'month',
  'year',
  'week',
];

/** The unit of a wire number; undefined for UNKNOWN and numbers that are no unit. */
export function unitOfWire(number: number): Unit | undefined {
  return units[number];
}

/** The wire number of a unit. */
export function wireOfUnit(unit: Unit): number {
  return units.indexOf(unit);
}

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

/** Entries, or what is wrong with the text. */
export type DescriptorText =
  | { readonly ok: true; readonly entries: readonly Entry[] }
  | { readonly ok: false; readonly problem: string };

/** Reads a descriptor as people write it, `key=value,key2=value2`: each entry has exactly one `=` and a key before it. */
export function parseDescriptorText(text: string): DescriptorText {
  const entries: Entry[] = [];
  for (const part of text.split(',')) {
    const [key = '', value, ...more] = part.split('=');
    if (key === '' || value === undefined || more.length > 0) {
      return {
        ok: false,
        problem: `'${part}' is no entry: expected key=value with exactly one '=', as in name=foo,age=14`,
      };
    }
    entries.push({ key, value });
  }
  return { ok: true, entries };
}
