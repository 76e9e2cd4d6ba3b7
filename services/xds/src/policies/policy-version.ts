import { getErrorMessage } from '@tollgate/kit/errors';
import { compilePolicy } from '@tollgate/policies/compile/compile';
import { allLimits, toRuleDocument } from '@tollgate/policies/compile/limits';
import type { PolicyResource } from '@tollgate/policies/definition/spec';
import { readPolicy } from '@tollgate/policies/read/read-policy';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import type { ConfigObject } from '../catalog/source.ts';
import type { StoredVersion } from '../catalog/stored-version.ts';
import { labelOf, type PolicyFinding, toFinding } from './policy-result.ts';

/** A version of a policy that auth servers and limiters accept. */
export interface ValidVersion {
  readonly resource: PolicyResource;
  readonly generation: number;
  /** The spec as it was written, and in JSON. */
  readonly spec: unknown;
  readonly json: string;
  /** The rules of its limits; undefined without limits. */
  readonly document: RuleDocument | undefined;
  readonly warnings: readonly PolicyFinding[];
}

export const specOf = ({ manifest }: ConfigObject): unknown => Reflect.get(Object(manifest), 'spec');

type ReadVersion =
  | { readonly ok: true; readonly valid: ValidVersion }
  | { readonly ok: false; readonly problems: readonly PolicyFinding[] };

/** A policy on which the compiler throws must not affect others. */
export function readVersion(object: ConfigObject, resolves: boolean): ReadVersion {
  try {
    return compileVersion(object, resolves);
  } catch (error) {
    const message = `cannot be read: ${getErrorMessage(error)}`;
    return { ok: false, problems: [toFinding(object, { message })] };
  }
}

function compileVersion(object: ConfigObject, resolves: boolean): ReadVersion {
  const read = readPolicy(object.manifest, labelOf(object));
  const compiled = read.ok ? compilePolicy(read.resource) : read;
  if (!read.ok || !compiled.ok) {
    const { problems } = compiled.ok ? { problems: [] } : compiled;
    return { ok: false, problems: problems.map((problem) => toFinding(object, problem)) };
  }
  const { resource } = read;
  if (resource.spec.targetRefs !== undefined && !resolves) {
    const message = 'objects of Gateway API are not read: use hosts';
    return { ok: false, problems: [toFinding(object, { field: 'spec.targetRefs', message })] };
  }
  const spec = specOf(object);
  const valid: ValidVersion = {
    resource,
    generation: object.generation,
    spec,
    json: JSON.stringify(spec),
    document: allLimits(resource.spec).length === 0 ? undefined : toRuleDocument(resource),
    warnings: compiled.warnings.map((warning) => toFinding(object, warning, warning.reason)),
  };
  return { ok: true, valid };
}

/** The version that was in force before a restart. */
export function readStored(object: ConfigObject, { generation, readSpec }: StoredVersion, resolves: boolean) {
  let spec: unknown;
  try {
    spec = readSpec();
  } catch (error) {
    const message = `the stored copy is damaged: ${getErrorMessage(error)}`;
    return { ok: false as const, problems: [toFinding(object, { message })] };
  }
  const manifest = { ...(typeof object.manifest === 'object' ? object.manifest : undefined), spec };
  return readVersion({ ...object, generation, manifest }, resolves);
}
