import type { JsonObject, JsonValue } from '@tollgate/rules/rule-document';
import type { Verdict } from './limit.ts';
import type { Descriptor, RateLimitRequest } from './request.ts';
import { Code, type DescriptorStatus } from './response.ts';

type MutableObject = Record<string, JsonValue>;

/** Names of override units in protobuf's text form. */
const unitNames = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'];

/**
 * What Envoy may log or route by: the request as it was asked and the metadata of the rules that let it pass.
 *
 * @see envoy.service.ratelimit.v3.RateLimitResponse.dynamic_metadata
 */
export function dynamicMetadata(
  request: RateLimitRequest,
  verdicts: readonly Verdict[],
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
  verdicts.forEach((verdict, i) => {
    if (verdict?.metadata !== undefined && statuses[i]?.code !== Code.OVER_LIMIT) {
      mergeFirstWins(metadata, verdict.metadata);
    }
  });
  if (Object.keys(metadata).length > 0) {
    result.metadata = metadata;
  }
  return result;
}

function describeDescriptor(descriptor: Descriptor): JsonObject {
  const result: MutableObject = { entries: descriptor.entries.map(({ key, value }) => `${key}=${value}`) };
  if (descriptor.limit !== undefined) {
    const { requestsPerUnit, unit } = descriptor.limit;
    // The text form leaves out zeros.
    const requests = requestsPerUnit === 0 ? '' : `requests_per_unit:${requestsPerUnit} `;
    result.limit = `${requests}unit:${unitNames[unit] ?? unit}`;
  }
  if (descriptor.hitsAddend !== undefined) {
    result.hitsAddend = Number(descriptor.hitsAddend);
  }
  return result;
}

/** Adds to `target` what it lacks, objects within objects; what it has stays. */
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

/** Without a prototype, so that a key such as `__proto__` is an ordinary one. */
function emptyObject(): MutableObject {
  return Object.create(null) as MutableObject;
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
