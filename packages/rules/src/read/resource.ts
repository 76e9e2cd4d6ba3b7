import type { JsonObject } from '@tollgate/kit/json';
import {
  type DescriptorSpec,
  type DomainOptions,
  fillIn,
  type LimitSpec,
  type RuleDocument,
} from '../definition/document.ts';
import { domainFields, domainOptions, type NamedField, nameBounds, rows } from '../definition/fields.ts';
import type { Location, RuleProblem } from '../definition/problem.ts';
import {
  limiterClassBounds,
  maxResourceDepth,
  resourceApiVersion,
  resourceFields,
  resourceGroup,
  resourceKind,
  resourceLists,
  unnamedLimitFields,
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
  findRulePlace,
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
  const read = startReading(source, findRulePlace);
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
  const domain = requiredText(spec, 'domain', domainFields.domain.bounds) ?? '';
  const hasLimits = !isAbsent(values.limits);
  if (hasLimits === !isAbsent(values.descriptors)) {
    const found = hasLimits ? 'both' : 'neither';
    report(read, spec.field, `needs exactly one of descriptors and limits, and has ${found}`);
  }
  // The location of the spec comes first, so that its handle is 0.
  const locations: ResourceLocations = [{ entry: spec.field, rule: undefined }];
  const descriptors = hasLimits ? readLimits(spec, locations) : readDescriptors(spec, locations);
  const isOnTrial = booleanField(spec, 'trial') ?? false;
  const limiterClass = textField(spec, 'limiterClassName', limiterClassBounds);
  const options: DomainOptions = fillIn({}, domainOptions, (field) => readField(spec, field));
  const rules = { ...options, descriptors };
  return {
    source: read.source,
    spelling: resourceSpelling,
    domain,
    ...(isOnTrial ? { descriptors: [], trial: rules } : rules),
    ...(limiterClass !== undefined && { limiterClass }),
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

/**
 * The value of a field without parts; undefined when absent or (reported) not within its bounds.
 */
export function readField(mapping: Mapping, field: NamedField): unknown {
  const { name } = field;
  switch (field.kind) {
    case 'flag':
      return booleanField(mapping, name);
    case 'count':
      return countField(mapping, field);
    case 'choice':
      return enumField(mapping, name, field.values);
    case 'names':
      return namesField(mapping, field);
    case 'json':
      return jsonField(mapping, name);
    case 'text':
      return field.always === true
        ? (requiredText(mapping, name, field.bounds) ?? '')
        : textField(mapping, name, field.bounds);
    case 'percent':
      return textField(mapping, name, field.bounds);
    default:
      return undefined;
  }
}

function jsonField(mapping: Mapping, name: string): JsonObject | undefined {
  const values = mappingField(mapping, name);
  return values && asMetadata(values);
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
  checkWhole(limit);
  const spec: LimitSpec = { requestsPerUnit: 0, at, name };
  const fields = name === undefined ? rows.limit : unnamedLimitFields;
  return fillIn(spec, fields, (field) => readField(limit, field));
}

/** A rateLimit is either unlimited or has a number and one of unit and period. */
function checkWhole(limit: Mapping): void {
  const { read, values } = limit;
  const { unlimited } = values;
  for (const name of ['unit', 'period', 'requestsPerUnit']) {
    const isThere = !isAbsent(values[name]);
    if (unlimited === true && isThere)
      report(read, fieldPath(limit, name), 'cannot be combined with unlimited: true; remove either');
    if (unlimited === true || isThere || name === 'period') continue;
    if (name === 'unit' && !isAbsent(values.period)) continue;
    report(read, fieldPath(limit, name), 'is required', 'or unlimited: true instead of a limit');
  }
}

function countField(mapping: Mapping, { name, max }: NamedField & { kind: 'count' }): number | undefined {
  const value = mapping.values[name];
  if (isAbsent(value)) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) return value;
  const expected = `must be a whole number from 0 to ${max}`;
  report(mapping.read, fieldPath(mapping, name), `${expected}, ${butFound(value, /^[0-9]+$/)}`);
  return undefined;
}

function namesField(
  limit: Mapping,
  { name: field, maxItems }: NamedField & { kind: 'names' },
): readonly string[] | undefined {
  const list = listField(limit, field, maxItems);
  if (list === undefined) return undefined;
  const path = fieldPath(limit, field);
  const names = new Set<string>();
  for (const [index, item] of list.entries()) {
    const name = readReplaced(limit, `${path}[${index}]`, item);
    if (name === undefined) continue;
    if (names.has(name)) report(limit.read, `${path}[${index}].name`, `'${name}' is listed twice`);
    names.add(name);
  }
  return names.size === 0 ? undefined : [...names];
}

function readReplaced({ read }: Mapping, field: string, item: unknown): string | undefined {
  const replaced = asMapping(read, field, item);
  if (replaced === undefined) return undefined;
  checkFields(replaced, resourceFields.replaced);
  return requiredText(replaced, 'name', nameBounds);
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
  const spec: DescriptorSpec = { key: '', at };
  fillIn(spec, rows.descriptor, (field) => {
    if (field.kind === 'limit') return rateLimitField(descriptor, { at });
    if (field.kind === 'descriptors') return descriptorsField(descriptor, locations, depth + 1);
    return readField(descriptor, field);
  });
  checkSharing(descriptor, spec);
  return spec;
}

/** A descriptor or an entry of a match that shares its counter has a value with a wildcard. */
export function checkSharing(entry: Mapping, { shareThreshold }: DescriptorSpec): void {
  const { value } = entry.values;
  if (shareThreshold === true && !(typeof value === 'string' && value.includes('*')))
    report(entry.read, fieldPath(entry, 'shareThreshold'), 'needs a value with a wildcard (*)');
}
