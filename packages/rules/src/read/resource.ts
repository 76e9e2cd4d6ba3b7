import {
  type DescriptorSpec,
  type DomainOptions,
  fillIn,
  type RuleDocument,
} from '../definition/document.ts';
import { domainFields, domainOptions, rows } from '../definition/fields.ts';
import type { Location, RuleProblem } from '../definition/problem.ts';
import {
  limiterClassBounds,
  maxResourceDepth,
  resourceApiVersion,
  resourceFields,
  resourceGroup,
  resourceKind,
  resourceLists,
} from '../definition/resource-shape.ts';
import { type FieldName, resourceSpelling } from '../definition/spelling.ts';
import {
  asMapping,
  booleanField,
  charge,
  checkFields,
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
import {
  describeValue,
  findRulePlace,
  locateInResource,
  type ResourceLocations,
  report,
} from './resource-problems.ts';
import { checkSharing, rateLimitField, readField } from './resource-rate-limit.ts';

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
