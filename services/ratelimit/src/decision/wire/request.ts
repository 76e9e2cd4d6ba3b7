import { fromJsonString } from '@bufbuild/protobuf';
import { type AppError, getErrorMessage } from '@tollgate/kit/errors';
import {
  type RateLimitRequest as RateLimitRequestMessage,
  RateLimitRequestSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import type { Entry } from '@tollgate/rules/match';
import type { Unit } from '@tollgate/rules/rule-set';
import { errors } from '../../errors.ts';

/**
 * The fields of the decoded message that decisions read, so that nothing is copied on the hot path.
 *
 * @see envoy.service.ratelimit.v3.RateLimitRequest
 */
export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** Hits of descriptors without their own number; 0 counts as 1. */
  readonly hitsAddend: number;
}

export interface Descriptor {
  readonly entries: readonly Entry[];
  /** Overrides the limit of the matching rule. */
  readonly limit?: LimitOverride | undefined;
  /** Hits of this descriptor; 0 reads the counter. Unsigned 64-bit. */
  readonly hitsAddend?: bigint | undefined;
  /** Takes the hits back instead of adding them. */
  readonly isNegativeHits?: boolean | undefined;
}

/** @see envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.RateLimitOverride */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** Number of the unit on the wire: 1 second … 7 week. */
  readonly unit: number;
}

/**
 * Parses a request in proto3 JSON. A missing body is empty text, which is not JSON.
 *
 * @throws AppError `malformed_request` with the reason.
 */
export function parseJsonRequest(body: unknown): RateLimitRequestMessage {
  try {
    const request = fromJsonString(RateLimitRequestSchema, decodeBody(body));
    requireWellFormedText(request);
    return request;
  } catch (cause) {
    const reason = getErrorMessage(cause);
    throw errors.malformed_request({
      message: `${errors.malformed_request.definition.message}: ${reason}`,
      cause,
    });
  }
}

/** The store replaces a lone surrogate by U+FFFD, so that all of them would share one counter. */
function requireWellFormedText({ domain, descriptors }: RateLimitRequestMessage): void {
  const entries = descriptors.flatMap(({ entries }) => entries);
  const texts = [domain, ...entries.flatMap(({ key, value }) => [key, value])];
  if (!texts.every((text) => text.isWellFormed())) {
    throw new Error('a text is not well-formed Unicode');
  }
}

function decodeBody(body: unknown): string {
  if (body instanceof Uint8Array) {
    // A lenient decoder would change the text and with it the counter. With the byte order mark
    // kept, the JSON is invalid.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  }
  return typeof body === 'string' ? body : '';
}

/** Why a request is invalid. Texts are those of envoyproxy/ratelimit where it has one. */
interface RequestProblem {
  readonly code: 'empty_domain' | 'no_descriptors' | 'too_many_descriptors' | 'invalid_override';
  readonly message: string;
}

/**
 * Envoy sends a handful. A thousand block the event loop for about 20 ms, and each has its own
 * counter.
 */
export const maxDescriptors = 1_000;

/** Checks what decisions rely on; undefined when the request is valid. */
export function validateRequest(request: RateLimitRequest): RequestProblem | undefined {
  const { domain, descriptors } = request;
  if (domain === '') {
    return { code: 'empty_domain', message: 'rate limit domain must not be empty' };
  }
  if (descriptors.length === 0) {
    return { code: 'no_descriptors', message: 'rate limit descriptor list must not be empty' };
  }
  if (descriptors.length > maxDescriptors) {
    return {
      code: 'too_many_descriptors',
      message: `a request may have ${maxDescriptors} descriptors, this one has ${descriptors.length}`,
    };
  }
  for (let i = 0; i < descriptors.length; i += 1) {
    const limit = descriptors[i]?.limit;
    if (limit !== undefined && unitFromWire(limit.unit) === undefined) {
      return {
        code: 'invalid_override',
        message: `descriptors[${i}].limit.unit must be one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR`,
      };
    }
  }
  return undefined;
}

export function invalidRequest({ code, message }: RequestProblem): AppError {
  return errors[code]({ message });
}

/**
 * One more than the largest limit. More hits change no decision, but could overflow the 64-bit
 * counter in Redis, which then fails every request, and Envoy fails open.
 */
const maxHits = 2 ** 32;

/**
 * Hits that a descriptor adds: its own number if it has one, else that of the request, at least 1.
 * Negative for a refund (`is_negative_hits`).
 */
export function getHitsAddend(request: RateLimitRequest, descriptor: Descriptor): number {
  const hits =
    descriptor.hitsAddend === undefined
      ? Math.max(1, request.hitsAddend)
      : Math.min(Number(descriptor.hitsAddend), maxHits);
  return descriptor.isNegativeHits === true && hits > 0 ? -hits : hits;
}

/**
 * Units by their number on the wire. @see
 * envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit
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

/** Undefined for UNKNOWN and for numbers that are not a unit. */
export function unitFromWire(number: number): Unit | undefined {
  return units[number];
}

/** 0, UNKNOWN, for undefined. */
export function unitToWire(unit: Unit | undefined): number {
  return units.indexOf(unit);
}
