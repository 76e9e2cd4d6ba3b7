import type { DescriptorSpec, JsonObject, LimitSpec, RuleDocument } from '../definition/document.ts';
import type { Location, RuleProblem } from '../definition/problem.ts';
import {
  maxRequestsPerUnit,
  maxResourceDepth,
  resourceAlgorithms,
  resourceApiVersion,
  resourceCharges,
  resourceFields,
  resourceGroup,
  resourceKind,
  resourceLists,
  resourceStoreFailures,
  resourceTexts,
  resourceUnits,
} from '../definition/resource-shape.ts';
import { type FieldName, resourceSpelling } from '../definition/spelling.ts';
import {
  asMapping,
  booleanField,
  charge,
  checkFields,
  enumField,
  fieldPath,
  isAbsent,
  isMapping,
  listField,
  type Mapping,
  mappingField,
  type Reading,
  requiredText,
  startReading,
  textField,
} from './resource-fields.ts';
import { readLimits } from './resource-limits.ts';
import { asMetadata } from './resource-metadata.ts';
import {
  butFound,
  describeValue,
  locateInResource,
  type ResourceLocations,
  report,
} from './resource-problems.ts';

/** The rules of a manifest, or every problem of its form. */
export type ResourceResult =
  | { readonly ok: true; readonly document: RuleDocument }
  | { readonly ok: false; readonly problems: readonly RuleProblem[] };

/**
 * Reads a RateLimitConfig decoded from JSON or YAML, with or without the defaults of the API
 * server. Refuses what the CRD refuses, and fields that the API server would drop. Problems that
 * involve several rules, such as descriptors with the same key and value, are found by
 * `compileRules`.
 */
export function readResource(manifest: unknown, source: string): ResourceResult {
  const read = startReading(source);
  const spec = findSpec(read, manifest);
  const document = spec === undefined ? undefined : readSpec(spec);
  return document === undefined || read.problems.length > 0
    ? { ok: false, problems: read.problems }
    : { ok: true, document };
}

/** The `spec` of a manifest of the right kind; undefined (reported) for any other. */
function findSpec(read: Reading, manifest: unknown): Mapping | undefined {
  if (!isMapping(manifest)) {
    report(read, '', `expected a ${resourceKind} manifest, not ${describeValue(manifest)}`);
    return undefined;
  }
  const root: Mapping = { read, field: '', values: manifest };
  if (!isOurs(root)) return undefined;
  checkFields(root, resourceFields.manifest);
  if (isAbsent(manifest.spec)) report(read, 'spec', 'is required');
  return mappingField(root, 'spec');
}

function isOurs({ read, values }: Mapping): boolean {
  const { apiVersion, kind } = values;
  if (isAbsent(apiVersion) && isAbsent(kind) && ('domain' in values || 'descriptors' in values)) {
    const hint = `put domain and descriptors into the spec of a ${resourceKind}, with rateLimit for rate_limit and Minute for minute`;
    report(read, '', `this is a rule file of the rate limit service, not a ${resourceKind} manifest`, hint);
    return false;
  }
  if (kind !== resourceKind)
    report(read, 'kind', `must be ${resourceKind}, not ${isAbsent(kind) ? 'nothing' : describeValue(kind)}`);
  else if (apiVersion !== resourceApiVersion) report(read, 'apiVersion', whichVersion(apiVersion));
  return kind === resourceKind && apiVersion === resourceApiVersion;
}

function whichVersion(apiVersion: unknown): string {
  const isOther = typeof apiVersion === 'string' && apiVersion.startsWith(`${resourceGroup}/`);
  const found = isAbsent(apiVersion) ? 'nothing' : describeValue(apiVersion);
  return `must be ${resourceApiVersion}, not ${found}${isOther ? ': that version is not known here' : ''}`;
}

function readSpec(spec: Mapping): RuleDocument {
  const { read, values } = spec;
  checkFields(spec, resourceFields.spec);
  const domain = requiredText(spec, 'domain', resourceTexts.domain) ?? '';
  const hasLimits = !isAbsent(values.limits);
  if (hasLimits === !isAbsent(values.descriptors)) {
    const found = hasLimits ? 'both' : 'neither';
    report(read, spec.field, `needs exactly one of descriptors and limits, and has ${found}`);
  }
  // The location of the spec comes first, so that its handle is 0.
  const locations: ResourceLocations = [{ entry: spec.field, rule: undefined }];
  const descriptors = hasLimits ? readLimits(spec, locations) : readDescriptors(spec, locations);
  const isOnTrial = booleanField(spec, 'trial') ?? false;
  const onStoreFailure = enumField(spec, 'onStoreFailure', resourceStoreFailures);
  const atomic = booleanField(spec, 'atomic');
  return {
    source: read.source,
    spelling: resourceSpelling,
    domain,
    ...(isOnTrial
      ? {
          descriptors: [],
          trialDescriptors: descriptors,
          trialOnStoreFailure: onStoreFailure,
          trialAtomic: atomic,
        }
      : { descriptors, onStoreFailure, atomic }),
    at: 0,
    locate: (at, field) => findLocation(locations, at, field),
  };
}

function findLocation(
  locations: ResourceLocations,
  at: number,
  field: FieldName | undefined,
): Location | undefined {
  const location = locations[at];
  return location === undefined ? undefined : locateInResource(location, field);
}

/** The `metadata` of a rule; undefined when absent or (reported) not JSON. */
export function metadataField(mapping: Mapping): JsonObject | undefined {
  const metadata = mappingField(mapping, 'metadata');
  return metadata && asMetadata(metadata);
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
    period: textField(limit, 'period', resourceTexts.period),
    timeZone: textField(limit, 'timeZone', resourceTexts.timeZone),
    requestsPerUnit: countField(limit, 'requestsPerUnit') ?? 0,
    unlimited,
    algorithm: enumField(limit, 'algorithm', resourceAlgorithms),
    burst: countField(limit, 'burst'),
    lease: textField(limit, 'lease', resourceTexts.lease),
    charge: enumField(limit, 'charge', resourceCharges),
    maxDebt: countField(limit, 'maxDebt'),
    name: name ?? textField(limit, 'name', resourceTexts.name),
    onStoreFailure: enumField(limit, 'onStoreFailure', resourceStoreFailures),
    replaces: replacesField(limit),
    at,
  };
}

/** A rateLimit is either unlimited or has a number and one of unit and period. */
function checkWhole(limit: Mapping, unlimited: boolean | undefined): void {
  const { read, values } = limit;
  for (const name of ['unit', 'period', 'requestsPerUnit']) {
    const isThere = !isAbsent(values[name]);
    if (unlimited === true && isThere)
      report(read, fieldPath(limit, name), 'cannot be combined with unlimited: true; remove either');
    if (unlimited === true || isThere || name === 'period') continue;
    if (name === 'unit' && !isAbsent(values.period)) continue;
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

function countField(limit: Mapping, name: 'requestsPerUnit' | 'burst' | 'maxDebt'): number | undefined {
  const value = limit.values[name];
  if (isAbsent(value)) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxRequestsPerUnit)
    return value;
  const expected = `must be a whole number from 0 to ${maxRequestsPerUnit}`;
  report(limit.read, fieldPath(limit, name), `${expected}, ${butFound(value, /^[0-9]+$/)}`);
  return undefined;
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
function readDescriptors(spec: Mapping, locations: ResourceLocations): readonly DescriptorSpec[] {
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
