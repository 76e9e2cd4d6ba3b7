import { isDeepStrictEqual } from 'node:util';
import { readStoredManifest, type StoredManifest, toStoredManifest } from '../catalog/stored-version.ts';
import type { Condition } from '../catalog/validation-result.ts';
import { toList, toText, toValues, type Values } from '../gateway-api/objects.ts';
import { accessPolicies } from '../kube/resources.ts';
import type { AncestorRef, PolicyResult } from '../policies/policy-result.ts';
import {
  type Conditions,
  type ConditionType,
  type PolicyObservation,
  toPolicyConditions,
} from './policy-conditions.ts';
import type { StatusKind } from './writer.ts';

/** A `metav1.Condition`. */
interface PolicyCondition extends Condition {
  readonly type: ConditionType;
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
}

/** A `PolicyAncestorStatus` of Gateway API. */
interface AncestorStatus {
  readonly ancestorRef: AncestorRef;
  readonly controllerName: string;
  readonly conditions: readonly PolicyCondition[];
}

/** `status` of an AccessPolicy, as far as this service writes it. */
export interface PolicyStatus {
  readonly observedGeneration: number;
  readonly target: string;
  readonly access: string;
  readonly limits: string;
  /** Absent when there are none. */
  readonly allowedHosts?: readonly string[];
  readonly lastValid?: StoredManifest;
  readonly ancestors: readonly AncestorStatus[];
  readonly conditions: readonly PolicyCondition[];
}

/** Bounds of the CRD, less the ellipsis. */
const maxMessageChars = 32_000;
const maxColumnChars = 1_000;

const controllerName = 'tollgate.dev/policy';

/**
 * Converts an observation to the status of its object `manifest`. A condition keeps its last
 * transition time from the present status, unless its status changes.
 */
export function toPolicyStatus(
  observation: PolicyObservation,
  manifest: { readonly spec?: unknown; readonly status?: unknown },
  nowMs: number,
): PolicyStatus {
  const { result } = observation;
  const { status: current } = manifest;
  const { generation: observedGeneration, inForce, allowedHosts } = result;
  const lastValid = chooseLastValid(result, current);
  const { own, ancestors } = toPolicyConditions(observation);
  const stamp = (conditions: Conditions, known: unknown) =>
    stampConditions(conditions, { known: toList(known), observedGeneration, nowMs });
  return {
    observedGeneration,
    ...toColumns(inForce?.spec, manifest.spec),
    ...(allowedHosts.length > 0 && { allowedHosts }),
    ...(lastValid && { lastValid }),
    ancestors: ancestors.map(({ ref, conditions }) => {
      const before = toList(toValues(current).ancestors).find(({ ancestorRef }) =>
        isDeepStrictEqual(ancestorRef, ref),
      );
      return { ancestorRef: ref, controllerName, conditions: stamp(conditions, before?.conditions) };
    }),
    conditions: stamp(own, toValues(current).conditions),
  };
}

function stampConditions(
  conditions: Conditions,
  options: { readonly known: readonly Values[]; readonly observedGeneration: number; readonly nowMs: number },
): readonly PolicyCondition[] {
  const { known, observedGeneration, nowMs } = options;
  return conditions.map(([type, { status, reason, message }]) => {
    const before = known.find((condition) => condition.type === type);
    const knownTime = before?.status === status ? toText(before.lastTransitionTime) : undefined;
    return {
      ...{ type, status, reason, message: cut(message, maxMessageChars), observedGeneration },
      lastTransitionTime: knownTime ?? new Date(nowMs).toISOString().replace(/\.\d+Z$/, 'Z'),
    };
  });
}

const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;

/**
 * Keeps the copy in the object unless there is a newer valid version, since replicas with different
 * libraries compress the same spec differently.
 */
function chooseLastValid(
  { generation, inForce }: PolicyResult,
  current: unknown,
): StoredManifest | undefined {
  const stored = readStoredManifest({ status: current }, generation);
  if (inForce === undefined || (stored !== undefined && stored.generation >= inForce.generation))
    return stored;
  return toStoredManifest(inForce.generation, inForce.spec);
}

/** Hosts or targets of a version in short. */
export function formatTarget(spec: unknown): string {
  const { hosts, targetRefs } = toValues(spec);
  const targets = toList(targetRefs).map(({ kind, name, sectionName }) =>
    [kind, name, ...(sectionName === undefined ? [] : [sectionName])].join('/'),
  );
  return toColumn(Array.isArray(hosts) ? hosts : targets);
}

const toColumn = (texts: readonly unknown[]): string => cut(texts.join(','), maxColumnChars);

/** The version in force in short, else only the target of what was written. */
function toColumns(inForce: unknown, written: unknown): Pick<PolicyStatus, 'target' | 'access' | 'limits'> {
  if (inForce === undefined) return { target: formatTarget(written), access: '', limits: '' };
  const { access, limits, defaults } = toValues(inForce);
  const { type = 'Authenticated' } = toValues(access ?? toValues(defaults).access);
  const named = toList(limits ?? toValues(defaults).limits).map(({ name }) => name);
  return { target: formatTarget(inForce), access: String(type), limits: toColumn(named) };
}

/** Whether the object has this status already; fields of other writers are ignored. */
export function hasPolicyStatus(current: unknown, wanted: PolicyStatus): boolean {
  const { conditions, ...others } = wanted;
  const present = toValues(current);
  const fields = { ...others, allowedHosts: wanted.allowedHosts };
  const known = toList(present.conditions);
  return (
    Object.entries(fields).every(([key, value]) => isDeepStrictEqual(present[key], value)) &&
    known.length === conditions.length &&
    conditions.every((condition) => known.some((one) => isDeepStrictEqual(one, condition)))
  );
}

/** The generation that all clients have acknowledged, and whether the policy is enforced. */
export function readStoredPolicyStatus(status: unknown): {
  readonly programmed: unknown;
  readonly isEnforced: boolean;
} {
  const known = toList(toValues(status).ancestors).flatMap((one) => toList(one.conditions));
  // Clients have a policy, too, that others replace.
  const programmed = known.find(
    ({ type, status, reason }) => type === 'Programmed' && (status === 'True' || reason === 'Overridden'),
  );
  return {
    programmed: programmed?.observedGeneration,
    isEnforced: known.some((one) => one.type === 'Enforced' && one.status === 'True'),
  };
}

export const policyStatuses: StatusKind<PolicyObservation, PolicyStatus> = {
  resource: accessPolicies,
  idOf: ({ result }) => result.id,
  isOf: ({ result }, { generation }) => result.generation === generation,
  isBehind: ({ result, isProvisional }, status) =>
    isProvisional === true && readStoredPolicyStatus(status).programmed === result.generation,
  isLast: ({ programmed }) => programmed.reason !== 'Pending',
  toManifest: (observation, { nowMs, storesLastValid, ...object }) => {
    const { lastValid, ...status } = toPolicyStatus(observation, object, nowMs);
    return { ...status, ...(lastValid && storesLastValid && { lastValid }) };
  },
  hasManifest: hasPolicyStatus,
};
