import type { RuleProblem } from '@tollgate/rules/problem';
import {
  checkFields,
  isAbsent,
  isMapping,
  type Mapping,
  mappingField,
  type Reading,
  startReading,
} from '@tollgate/rules/resource-fields';
import { describeValue, report } from '@tollgate/rules/resource-problems';
import { specFields } from '../definition/fields.ts';
import { manifestFields, policyApiVersion, policyKind } from '../definition/resource-shape.ts';
import type { PolicyResource, PolicySpec } from '../definition/spec.ts';
import { normalizeHost } from '../match/hosts.ts';
import { readPart } from './read-part.ts';

/** A policy, or every problem of its form. */
export type PolicyResult =
  | { readonly ok: true; readonly resource: PolicyResource }
  | { readonly ok: false; readonly problems: readonly RuleProblem[] };

/**
 * Reads an AccessPolicy decoded from JSON or YAML. Refuses what a schema refuses, and fields that
 * the API server would drop. What involves several fields is found by `compilePolicy`.
 *
 * @param source label in messages
 */
export function readPolicy(manifest: unknown, source: string): PolicyResult {
  const read = startReading(source, findPolicyPlace);
  const root = findRoot(read, manifest);
  if (root === undefined) return { ok: false, problems: read.problems };
  checkFields(root, manifestFields);
  const { namespace = 'default', name } = isMapping(root.values.metadata) ? root.values.metadata : {};
  if (typeof name !== 'string' || name === '') report(read, 'metadata.name', 'is required');
  const spec = readSpec(root);
  return spec === undefined || read.problems.length > 0
    ? { ok: false, problems: read.problems }
    : { ok: true, resource: { namespace: String(namespace), name: String(name), spec } };
}

function findRoot(read: Reading, manifest: unknown): Mapping | undefined {
  if (!isMapping(manifest)) {
    report(read, '', `expected an ${policyKind} manifest, not ${describeValue(manifest)}`);
    return undefined;
  }
  const wanted = { kind: policyKind, apiVersion: policyApiVersion };
  for (const [field, expected] of Object.entries(wanted)) {
    const value = manifest[field];
    if (value === expected) continue;
    report(read, field, `must be ${expected}, not ${isAbsent(value) ? 'nothing' : describeValue(value)}`);
    return undefined;
  }
  return { read, field: '', values: manifest };
}

function readSpec(root: Mapping): PolicySpec | undefined {
  if (isAbsent(root.values.spec)) report(root.read, 'spec', 'is required');
  const spec = mappingField(root, 'spec');
  return spec && readPart(spec, specFields);
}

/** Hosts of a manifest that may be invalid, in the form in which hosts of requests are compared. */
export function findHosts(manifest: unknown): readonly string[] {
  const spec = isMapping(manifest) && isMapping(manifest.spec) ? manifest.spec : {};
  const hosts: readonly unknown[] = Array.isArray(spec.hosts) ? spec.hosts : [];
  const { pattern, max } = specFields.hosts.bounds;
  return hosts
    .filter((host) => typeof host === 'string')
    .map(normalizeHost)
    .filter((host) => host.length <= max && pattern?.test(host) === true);
}

/** Other words for a field. */
const synonyms: Readonly<Record<string, string>> = {
  host: 'hosts',
  hostnames: 'hosts',
  targetref: 'targetRefs',
  requestsperunit: 'requests',
  limit: 'limits',
  unit: 'per',
  window: 'period',
  duration: 'period',
  match: 'matches',
  method: 'methods',
  role: 'roles',
  scope: 'scopes',
  plan: 'plans',
  aal: 'assurance',
  anonymous: 'anonymousUsers',
  key: 'by',
};

/** Parts in which a field may belong. */
const homes: readonly (readonly [part: string, fields: readonly string[]])[] = [
  ['access', Object.keys(specFields.access.fields)],
  ['limits', Object.keys(specFields.limits.fields)],
  ['matches', Object.keys(specFields.rules.fields.matches.fields)],
];

function findPolicyPlace(plain: string, known: readonly string[]): string | undefined {
  const meant = synonyms[plain];
  if (meant !== undefined && known.includes(meant)) return `did you mean ${meant}?`;
  const home = homes.find(
    ([part, fields]) => known.includes(part) && fields.some((field) => field.toLowerCase() === plain),
  );
  return home && `it belongs in ${home[0]}`;
}
