import type { Json, JsonObject } from '@tollgate/kit/json';
import { getAlgorithm } from '../../algorithms/registry.ts';
import type { DescriptorLimit } from '../find-limit.ts';
import type { Descriptor, RateLimitRequest } from './request.ts';
import { Code, type DescriptorStatus } from './response.ts';

type MutableObject = Record<string, Json>;

/** Names of override units in protobuf's text form. */
const unitNames = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'];

/**
 * The request, and the metadata of the rules that allow it, for Envoy to log or route by.
 *
 * @see envoy.service.ratelimit.v3.RateLimitResponse.dynamic_metadata
 */
export function getDynamicMetadata(
  request: RateLimitRequest,
  limits: readonly DescriptorLimit[],
  statuses: readonly DescriptorStatus[],
): JsonObject {
  const result: MutableObject = {
    domain: request.domain,
    descriptors: request.descriptors.map(describeDescriptor),
  };
  if (request.hitsAddend !== 0) {
    result.hitsAddend = request.hitsAddend;
  }
  const metadata = emptyObject();
  limits.forEach((limit, i) => {
    const own = limit?.rule.metadata;
    if (limit !== undefined && own !== undefined && isGranted(limit, statuses[i]))
      mergeFirstWins(metadata, own);
  });
  if (Object.keys(metadata).length > 0) {
    result.metadata = metadata;
  }
  return result;
}

/**
 * With the metadata of a concurrency limit, Envoy sends a refund. So they are for requests that
 * took a slot: another limit, or shadow mode, may have left the request without one.
 */
function isGranted(limit: NonNullable<DescriptorLimit>, status: DescriptorStatus | undefined): boolean {
  const takesSlots = limit.kind === 'limited' && getAlgorithm(limit.rule.rate).holdsSlots;
  return takesSlots ? status?.tookSlots === true : status?.code !== Code.OVER_LIMIT;
}

function describeDescriptor(descriptor: Descriptor): JsonObject {
  const result: MutableObject = { entries: descriptor.entries.map(({ key, value }) => `${key}=${value}`) };
  if (descriptor.limit !== undefined) {
    const { requestsPerUnit, unit } = descriptor.limit;
    // The text form omits zeros.
    const requests = requestsPerUnit === 0 ? '' : `requests_per_unit:${requestsPerUnit} `;
    result.limit = `${requests}unit:${unitNames[unit] ?? unit}`;
  }
  if (descriptor.hitsAddend !== undefined) {
    result.hitsAddend = Number(descriptor.hitsAddend);
  }
  return result;
}

/** Merges recursively; values of `target` win. */
function mergeFirstWins(target: MutableObject, source: JsonObject): MutableObject {
  for (const [key, value] of Object.entries(source)) {
    const present = target[key];
    if (present === undefined) {
      target[key] = value;
    } else if (isObject(present) && isObject(value)) {
      target[key] = mergeFirstWins(copyObject(present), value);
    }
  }
  return target;
}

function copyObject(source: JsonObject): MutableObject {
  return mergeFirstWins(emptyObject(), source);
}

/** The object has no prototype, so that `__proto__` is an ordinary key. */
function emptyObject(): MutableObject {
  return Object.create(null) as MutableObject;
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
