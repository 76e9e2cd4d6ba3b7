import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { LimitDescriptor } from '@tollgate/policies/compile/limits';
import { type Descriptor, type LimitedRequest, toDescriptor } from '@tollgate/policies/decide/descriptors';
import type { RateLimitDescriptorSchema } from '@tollgate/proto/envoy/extensions/common/ratelimit/v3/ratelimit';
import {
  RateLimitResponse_Code as Code,
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  RateLimitRequestSchema,
  type RateLimitResponse,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { RateLimitUnit } from '@tollgate/proto/envoy/type/v3/ratelimit_unit';
import { MessageWriter } from './codec.ts';

/**
 * Writes a RateLimitRequest. Undefined when each descriptor lacks a value: such descriptors are
 * dropped, as Envoy does.
 */
export function writeRateLimitRequest(
  domain: string,
  limits: readonly LimitDescriptor[],
  request: LimitedRequest,
): Uint8Array | undefined {
  const descriptors = limits.flatMap((limit) => toDescriptor(limit, request) ?? []);
  if (descriptors.length === 0) return undefined;
  return writeUsual(domain, descriptors) ?? encodeRateLimitRequest(domain, descriptors);
}

/**
 * Writes without reflection. Undefined with the limit of a user, text outside ASCII, or a lot of
 * text.
 */
function writeUsual(domain: string, descriptors: readonly Descriptor[]): Uint8Array | undefined {
  const writer = new MessageWriter();
  // The writer writes from the end to the beginning.
  for (const { entries, limit } of descriptors.toReversed()) {
    if (limit !== undefined) return undefined;
    const descriptorEnd = writer.position;
    for (const { key, value } of entries.toReversed()) {
      const entryEnd = writer.position;
      writer.writeText(0x12, value);
      writer.writeText(0x0a, key);
      writer.writeHeader(0x0a, entryEnd);
    }
    writer.writeHeader(0x12, descriptorEnd);
  }
  writer.writeText(0x0a, domain);
  return writer.finish();
}

function encodeRateLimitRequest(domain: string, descriptors: readonly Descriptor[]): Uint8Array {
  return toBinary(
    RateLimitRequestSchema,
    create(RateLimitRequestSchema, { domain, descriptors: descriptors.map(toWire) }),
  );
}

function toWire({ entries, limit }: Descriptor): MessageInitShape<typeof RateLimitDescriptorSchema> {
  if (limit === undefined) return { entries: [...entries] };
  const { requestsPerUnit, unit } = limit;
  return { entries: [...entries], limit: { requestsPerUnit, unit: RateLimitUnit[unit] } };
}

/** A limit of an explained request, and its counter. */
export interface LimitPeek {
  /** Undefined for a limit of the routes file. */
  readonly name: string | undefined;
  readonly by: readonly string[];
  /**
   * Whether it lets the next request pass. `not_counted`: the request lacks one of the attributes.
   * `on_trial`: reading its counter would count in the trial. `failed_…`: the rate limit service
   * does not answer.
   */
  readonly state:
    | 'ok'
    | 'exceeded'
    | 'unlimited'
    | 'not_counted'
    | 'on_trial'
    | 'failed_open'
    | 'failed_closed';
  readonly mode?: LimitDescriptor['mode'];
  readonly requests?: number;
  readonly unit?: string;
  readonly remaining?: number;
  readonly resetSeconds?: number;
}

interface PeekRequest {
  /** Undefined if no limit counts the request. */
  readonly message: Uint8Array | undefined;
  /** Limits of the descriptors of the message, in their order. */
  readonly counted: readonly LimitDescriptor[];
  /** The other limits. */
  readonly others: readonly LimitPeek[];
}

/** Writes a RateLimitRequest that reads counters without counting. */
export function writePeekRequest(
  domain: string,
  limits: readonly LimitDescriptor[],
  request: LimitedRequest,
): PeekRequest {
  const counted: LimitDescriptor[] = [];
  const others: LimitPeek[] = [];
  const descriptors: MessageInitShape<typeof RateLimitDescriptorSchema>[] = [];
  for (const limit of limits) {
    const descriptor = toDescriptor(limit, request);
    if (descriptor === undefined) others.push(describeLimit(limit, 'not_counted'));
    else if (limit.mode === 'Trial') others.push(describeLimit(limit, 'on_trial'));
    else {
      counted.push(limit);
      descriptors.push({ ...toWire(descriptor), hitsAddend: 0n });
    }
  }
  if (counted.length === 0) return { message: undefined, counted, others };
  const message = create(RateLimitRequestSchema, { domain, descriptors });
  return { message: toBinary(RateLimitRequestSchema, message), counted, others };
}

/** Describes a limit without its counter. */
export function describeLimit(limit: LimitDescriptor, state: LimitPeek['state']): LimitPeek {
  const { name, keys: by, mode } = limit;
  return { name, by, state, ...(mode !== undefined && { mode }) };
}

/** Reads the counters of the limits of a peek. @throws Error when the answer is malformed. */
export function readPeekResponse(
  bytes: Uint8Array,
  counted: readonly LimitDescriptor[],
): readonly LimitPeek[] {
  const { statuses } = fromBinary(RateLimitResponseSchema, bytes, { readUnknownFields: false });
  if (statuses.length !== counted.length)
    throw new Error('the rate limit service answered other descriptors');
  return counted.map((limit, index) => {
    const status = statuses[index];
    if (status?.currentLimit === undefined) return describeLimit(limit, 'unlimited');
    const { requestsPerUnit: requests, unit } = status.currentLimit;
    const isExceeded = status.code === Code.OVER_LIMIT || status.limitRemaining === 0;
    return {
      ...describeLimit(limit, isExceeded && limit.mode === undefined ? 'exceeded' : 'ok'),
      ...{ requests, unit: RateLimitUnit[unit] ?? '', remaining: status.limitRemaining },
      resetSeconds: secondsUntilReset(status),
    };
  });
}

/** The answer of the rate limit service. */
export interface RateLimitAnswer {
  readonly code: 'ok' | 'over_limit';
  /** The client gets them; names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Reads a RateLimitResponse.
 *
 * @throws Error when it is malformed, or has no code.
 */
export function readRateLimitResponse(bytes: Uint8Array): RateLimitAnswer {
  const response = fromBinary(RateLimitResponseSchema, bytes, { readUnknownFields: false });
  if (response.overallCode !== Code.OK && response.overallCode !== Code.OVER_LIMIT)
    throw new Error('the rate limit service answered without a code');
  const headers = getHeaders(response);
  if (response.overallCode === Code.OK) return { code: 'ok', headers };
  const { 'retry-after': retryAfter = retryAfterSeconds(response.statuses) } = headers;
  return { code: 'over_limit', headers: { ...headers, 'retry-after': retryAfter } };
}

/** Names and values that are valid in HTTP. */
const headerName = /^[\w!#$%&'*+.^`|~-]+$/;
const headerValue = /^[\t -~]*$/;

/** The headers of the service, or else those of the limit with the least remaining. */
function getHeaders({ responseHeadersToAdd, statuses }: RateLimitResponse): Record<string, string> {
  const valid = responseHeadersToAdd.filter(
    ({ key, value }) => headerName.test(key) && headerValue.test(value),
  );
  if (valid.length > 0) return Object.fromEntries(valid.map(({ key, value }) => [key.toLowerCase(), value]));
  const tightest = findTightest(statuses);
  if (tightest?.currentLimit === undefined) return {};
  return {
    'ratelimit-limit': String(tightest.currentLimit.requestsPerUnit),
    'ratelimit-remaining': String(tightest.limitRemaining),
    'ratelimit-reset': String(secondsUntilReset(tightest)),
  };
}

/** A limit that is exceeded comes first. */
function findTightest(statuses: readonly DescriptorStatus[]): DescriptorStatus | undefined {
  const rank = ({ code, limitRemaining }: DescriptorStatus) =>
    code === Code.OVER_LIMIT ? -1 : limitRemaining;
  return statuses
    .filter(({ currentLimit }) => currentLimit !== undefined)
    .reduce<DescriptorStatus | undefined>(
      (least, status) => (least === undefined || rank(status) < rank(least) ? status : least),
      undefined,
    );
}

/** All exceeded limits must be reset. */
function retryAfterSeconds(statuses: readonly DescriptorStatus[]): string {
  const exceeded = statuses.filter(({ code }) => code === Code.OVER_LIMIT);
  return String(Math.max(1, ...exceeded.map(secondsUntilReset)));
}

function secondsUntilReset({ durationUntilReset }: DescriptorStatus): number {
  if (durationUntilReset === undefined) return 0;
  return Number(durationUntilReset.seconds) + (durationUntilReset.nanos > 0 ? 1 : 0);
}
