import { createHash } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { compareText } from '@tollgate/kit/text';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import type { DescriptorSpec, JsonObject, JsonValue, RuleDocument } from '@tollgate/rules/rule-document';
import { toMessage } from '@tollgate/rules/rule-message';
import { rateLimitConfigType } from '../domain/resource-type.ts';

/** The encoded `google.protobuf.Any` of a domain's rules: equal bytes for equal rules. */
export function encodeRules({ descriptors, ...document }: RuleDocument): Uint8Array {
  const message = toMessage({ ...document, descriptors: descriptors.map(canonical) });
  const value = toBinary(RateLimitConfigSchema, message);
  return toBinary(AnySchema, create(AnySchema, { typeUrl: rateLimitConfigType, value }));
}

/** Hexadecimal digits of a version: 128 bits of SHA-256, which nobody finds a second content for by accident. */
const versionLength = 32;

/** The version of a content. */
export function hashContent(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex').slice(0, versionLength);
}

/** With metadata in the order of its keys, which is all that two sources of the same rules may differ in. */
function canonical(spec: DescriptorSpec): DescriptorSpec {
  const { metadata, descriptors } = spec;
  if (metadata === undefined && descriptors === undefined) return spec;
  return {
    ...spec,
    metadata: metadata === undefined ? undefined : sortObject(metadata),
    descriptors: descriptors?.map(canonical),
  };
}

function sortObject(object: JsonObject): JsonObject {
  const keys = Object.keys(object).sort(compareText);
  // fromEntries, not assignment: `__proto__` is a key like any other.
  return Object.fromEntries(keys.map((key) => [key, sortKeys(object[key] ?? null)]));
}

function sortKeys(value: JsonValue): JsonValue {
  if (isList(value)) return value.map(sortKeys);
  return typeof value === 'object' && value !== null ? sortObject(value) : value;
}

// Array.isArray alone does not narrow a readonly list.
const isList = (value: JsonValue): value is readonly JsonValue[] => Array.isArray(value);
