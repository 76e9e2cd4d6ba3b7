import type { JsonObject } from '@tollgate/kit/json';
import { charge, fieldPath, isMapping, type Mapping, type Reading } from './resource-fields.ts';
import { describeValue, report } from './resource-problems.ts';

/**
 * Deepest nesting inside metadata: each level takes three of a `google.protobuf.Struct`, and
 * decoders of protobuf stop at 100.
 */
const maxMetadataDepth = 16;

/**
 * A mapping as metadata; undefined when it is (reported) not JSON. Not copied: the parsers of
 * manifests keep `__proto__` an ordinary key.
 */
export function asMetadata({ read, field, values }: Mapping): JsonObject | undefined {
  return checkItems(read, field, { values, depth: 1 }) ? (values as JsonObject) : undefined; // just checked to be JSON
}

interface Level {
  readonly values: Readonly<Record<string, unknown>>;
  readonly depth: number;
}

function checkItems(read: Reading, field: string, { values, depth }: Level): boolean {
  return Object.keys(values).every((name) =>
    checkValue(read, fieldPath({ read, field, values }, name), { value: values[name], depth }),
  );
}

/** Whether a value is JSON; reports the first one that is not. */
function checkValue(
  read: Reading,
  field: string,
  { value, depth }: { value: unknown; depth: number },
): boolean {
  if (!charge(read, field)) return false;
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number' && Number.isFinite(value)) return true;
  if (depth > maxMetadataDepth) return refuse(read, field, `nests deeper than ${maxMetadataDepth} levels`);
  if (Array.isArray(value))
    return value.every((item, index) =>
      checkValue(read, `${field}[${index}]`, { value: item, depth: depth + 1 }),
    );
  if (isMapping(value)) return checkItems(read, field, { values: value, depth: depth + 1 });
  return refuse(read, field, `must be a value that JSON has, not ${describeValue(value)}`);
}

function refuse(read: Reading, field: string, message: string): false {
  report(read, field, message);
  return false;
}
