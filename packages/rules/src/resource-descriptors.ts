import {
  maxRequestsPerUnit,
  maxResourceDepth,
  resourceFields,
  resourceLists,
  resourceTexts,
  resourceUnits,
} from './resource-shape.ts';
import {
  asMapping,
  booleanField,
  butFound,
  charge,
  checkFields,
  describeValue,
  fieldPath,
  isAbsent,
  isMapping,
  listField,
  type Mapping,
  mappingField,
  type Reading,
  type ResourceLocations,
  report,
  requiredText,
  textField,
} from './resource-value.ts';
import type { DescriptorSpec, JsonObject, LimitSpec } from './rule-document.ts';

/**
 * Deepest nesting inside metadata: each level takes three of a `google.protobuf.Struct`, and
 * decoders of protobuf stop at 100.
 */
const maxMetadataDepth = 16;

/**
 * The `metadata` of a rule, or undefined when absent or (reported) not JSON. Not copied: the
 * parsers of manifests keep `__proto__` an ordinary key.
 */
export function metadataField(mapping: Mapping): JsonObject | undefined {
  const metadata = mappingField(mapping, 'metadata');
  if (metadata === undefined) return undefined;
  const { read, field, values } = metadata;
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

/** Where a `rateLimit` is defined. */
export interface RateLimitLocation {
  /** Handle for `RuleDocument.locate`. */
  readonly at: number;
  /** Name of the limit, when it is defined outside of `rateLimit`. */
  readonly name?: string | undefined;
}

/** The `rateLimit` in a descriptor or a limit; undefined when absent or (reported) no mapping. */
export function rateLimitField(mapping: Mapping, { at, name }: RateLimitLocation): LimitSpec | undefined {
  const limit = mappingField(mapping, 'rateLimit');
  if (limit === undefined) return undefined;
  checkFields(limit, name === undefined ? resourceFields.rateLimit : resourceFields.limitRateLimit);
  const unlimited = booleanField(limit, 'unlimited');
  checkWhole(limit, unlimited);
  return {
    unit: unitField(limit),
    requestsPerUnit: countField(limit),
    unlimited,
    name: name ?? textField(limit, 'name', resourceTexts.name),
    replaces: replacesField(limit),
    at,
  };
}

/** A rateLimit is either unlimited or has both of its numbers. */
function checkWhole(limit: Mapping, unlimited: boolean | undefined): void {
  const { read, values } = limit;
  for (const name of ['unit', 'requestsPerUnit']) {
    const isThere = !isAbsent(values[name]);
    if (unlimited === true && isThere)
      report(read, fieldPath(limit, name), 'cannot be combined with unlimited: true; remove either');
    if (unlimited !== true && !isThere)
      report(read, fieldPath(limit, name), 'is required', 'or unlimited: true instead of a limit');
  }
}

function unitField(limit: Mapping): string | undefined {
  const value = limit.values.unit;
  if (isAbsent(value)) return undefined;
  const unit = resourceUnits.find((known) => known === value);
  if (unit === undefined)
    report(
      limit.read,
      fieldPath(limit, 'unit'),
      `must be one of ${resourceUnits.join(', ')}, not ${describeValue(value)}`,
    );
  return unit;
}

function countField(limit: Mapping): number {
  const value = limit.values.requestsPerUnit;
  if (isAbsent(value)) return 0;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxRequestsPerUnit)
    return value;
  const expected = `must be a whole number from 0 to ${maxRequestsPerUnit}`;
  report(limit.read, fieldPath(limit, 'requestsPerUnit'), `${expected}, ${butFound(value, /^[0-9]+$/)}`);
  return 0;
}

function replacesField(limit: Mapping): readonly string[] | undefined {
  const list = listField(limit, 'replaces', resourceLists.replaces);
  if (list === undefined) return undefined;
  const names = new Set<string>();
  for (const [index, item] of list.entries()) {
    const name = readReplaced(limit, `${fieldPath(limit, 'replaces')}[${index}]`, item);
    if (name === undefined) continue;
    if (names.has(name))
      report(limit.read, `${fieldPath(limit, 'replaces')}[${index}].name`, `'${name}' is listed twice`);
    names.add(name);
  }
  return names.size === 0 ? undefined : [...names];
}

function readReplaced({ read }: Mapping, field: string, item: unknown): string | undefined {
  const replaced = asMapping(read, field, item);
  if (replaced === undefined) return undefined;
  checkFields(replaced, resourceFields.replaced);
  return requiredText(replaced, 'name', resourceTexts.name);
}

/** The tree of `descriptors` in the spec of an object. */
export function readDescriptors(spec: Mapping, locations: ResourceLocations): readonly DescriptorSpec[] {
  return descriptorsField(spec, locations, 1) ?? [];
}

function descriptorsField(
  parent: Mapping,
  locations: ResourceLocations,
  depth: number,
): readonly DescriptorSpec[] | undefined {
  const { read } = parent;
  const list = listField(parent, 'descriptors', resourceLists.descriptors);
  if (list === undefined || list.length === 0) return undefined;
  const field = fieldPath(parent, 'descriptors');
  if (depth > maxResourceDepth) {
    report(read, field, `nests deeper than ${maxResourceDepth} levels of descriptors`);
    return undefined;
  }
  const specs: DescriptorSpec[] = [];
  for (const [index, item] of list.entries()) {
    const itemField = `${field}[${index}]`;
    if (!charge(read, itemField)) break;
    const descriptor = asMapping(read, itemField, item);
    if (descriptor !== undefined) specs.push(readDescriptor(descriptor, locations, depth));
  }
  return specs;
}

function readDescriptor(descriptor: Mapping, locations: ResourceLocations, depth: number): DescriptorSpec {
  const { field } = descriptor;
  const at = locations.push({ entry: field, rule: field }) - 1;
  checkFields(descriptor, resourceFields.descriptor);
  return {
    key: requiredText(descriptor, 'key', resourceTexts.key) ?? '',
    value: textField(descriptor, 'value', resourceTexts.value),
    rateLimit: rateLimitField(descriptor, { at }),
    descriptors: descriptorsField(descriptor, locations, depth + 1),
    shadowMode: booleanField(descriptor, 'shadowMode'),
    quotaMode: booleanField(descriptor, 'quotaMode'),
    detailedMetric: booleanField(descriptor, 'detailedMetric'),
    valueToMetric: booleanField(descriptor, 'valueToMetric'),
    shareThreshold: shareThresholdField(descriptor),
    metadata: metadataField(descriptor),
    at,
  };
}

/**
 * The `shareThreshold` of a descriptor or of an entry of a match: it is for values with a wildcard.
 */
export function shareThresholdField(entry: Mapping): boolean | undefined {
  const shares = booleanField(entry, 'shareThreshold');
  const { value } = entry.values;
  if (shares === true && !(typeof value === 'string' && value.includes('*')))
    report(entry.read, fieldPath(entry, 'shareThreshold'), 'needs a value with a wildcard (*)');
  return shares;
}
