import type { Location, RuleProblem } from './problem.ts';
import { readDescriptors } from './resource-descriptors.ts';
import { readLimits } from './resource-limits.ts';
import {
  resourceApiVersion,
  resourceFields,
  resourceGroup,
  resourceKind,
  resourceTexts,
} from './resource-shape.ts';
import {
  checkFields,
  describeValue,
  isAbsent,
  isMapping,
  locateInResource,
  type Mapping,
  mappingField,
  type Reading,
  type ResourceLocations,
  report,
  requiredText,
  startReading,
} from './resource-value.ts';
import type { RuleDocument } from './rule-document.ts';

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
  const locations: ResourceLocations = [{ entry: spec.field, rule: spec.field }];
  const descriptors = hasLimits ? readLimits(spec, locations) : readDescriptors(spec, locations);
  return {
    source: read.source,
    domain,
    descriptors,
    at: 0,
    locate: (at, field) => findLocation(locations, at, field),
  };
}

function findLocation(
  locations: ResourceLocations,
  at: number,
  field: string | undefined,
): Location | undefined {
  const location = locations[at];
  return location === undefined ? undefined : locateInResource(location, field);
}
