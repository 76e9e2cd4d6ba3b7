import { isDeepStrictEqual } from 'node:util';
import { policyApiVersion, policyKind } from '@tollgate/policies/definition/resource-shape';
import { readStoredManifest, type StoredManifest, toStoredManifest } from '../catalog/stored-version.ts';
import type { Condition } from '../catalog/validation-result.ts';
import { toList, toText, toValues, type Values } from '../gateway-api/objects.ts';
import {
  type AncestorRef,
  formatFinding,
  type PolicyAncestor,
  type PolicyFinding,
  type PolicyResult,
} from '../policies/policy-result.ts';

/** A `metav1.Condition`. */
interface PolicyCondition extends Condition {
  readonly type:
    | 'Accepted'
    | 'Programmed'
    | 'Enforced'
    | 'Overridden'
    | 'LimitsDoNotCoverAll'
    | 'Ready'
    | 'Reconciling'
    | 'Stalled';
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
}

/** Conditions by type, before they have a time. */
type Conditions = readonly (readonly [PolicyCondition['type'], Condition])[];

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

/** The result of a policy, and what its clients say about it. */
export interface PolicyObservation {
  readonly result: PolicyResult;
  /** Whether clients have acknowledged the version in force. */
  readonly programmed: Condition;
  /** Whether an auth server had a check with it. */
  readonly isSeen: boolean;
}

/** Bounds of the CRD, less the ellipsis. */
const maxMessageChars = 32_000;
const maxColumnChars = 1_000;

/** Bound of GEP-713. */
const maxAncestors = 16;

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
  const { generation: observedGeneration, warnings, inForce, allowedHosts } = result;
  const uncovered = warnings.filter(({ reason }) => reason === 'LimitsDoNotCoverAll');
  const lastValid = chooseLastValid(result, current);
  const { accepted, programmed, ancestors, enforced } = toConditions(observation);
  const ready = findReady(accepted, programmed, enforced);
  const stamp = (conditions: Conditions, known: unknown) =>
    stampConditions(conditions, { known: toList(known), observedGeneration, nowMs });
  return {
    observedGeneration,
    ...toColumns(inForce?.spec, manifest.spec),
    ...(allowedHosts.length > 0 && { allowedHosts }),
    ...(lastValid && { lastValid }),
    ancestors: ancestors.map((ancestor, index) => {
      const { ref } = ancestor;
      const before = toList(toValues(current).ancestors).find(({ ancestorRef }) =>
        isDeepStrictEqual(ancestorRef, ref),
      );
      const own = enforced[index] ?? noTraffic;
      const conditions: Conditions = [
        ['Accepted', accepted],
        ['Programmed', toProgrammedAt(ancestor, programmed)],
        ['Enforced', own],
        ...toOverridden(ancestor),
      ];
      return { ancestorRef: ref, controllerName, conditions: stamp(conditions, before?.conditions) };
    }),
    conditions: stamp(
      [
        ['Accepted', accepted],
        ...(uncovered.length === 0
          ? []
          : [
              [
                'LimitsDoNotCoverAll',
                { status: 'True', reason: 'LimitsDoNotCoverAll', message: formatAll(uncovered) },
              ] as const,
            ]),
        ['Ready', ready],
        ...toProgress(ready),
      ],
      toValues(current).conditions,
    ),
  };
}

/** The conditions of a policy; those of `enforced` are by ancestor. */
function toConditions(observation: PolicyObservation) {
  const { result, isSeen } = observation;
  const [problem] = result.problems;
  const accepted: Condition =
    problem === undefined
      ? {
          status: 'True',
          reason: 'Accepted',
          message: 'the policy is valid, and may have its hosts or targets',
        }
      : { status: 'False', reason: problem.reason, message: formatAll(result.problems) };
  const ancestors = chooseAncestors(result);
  return {
    ...{ accepted, programmed: toProgrammed(observation), ancestors },
    enforced: ancestors.map((ancestor) => toEnforced(ancestor, isSeen)),
  };
}

/** Finds the condition that the owner has to act upon first; undefined if there is none. */
export function findActionNeeded(
  observation: PolicyObservation,
): { readonly type: 'Accepted' | 'Programmed' | 'Enforced'; readonly condition: Condition } | undefined {
  const { accepted, programmed, enforced } = toConditions(observation);
  const candidates = [
    { type: 'Accepted', condition: accepted } as const,
    { type: 'Programmed', condition: programmed } as const,
    ...enforced.map((condition) => ({ type: 'Enforced', condition }) as const),
  ];
  return candidates.find(
    ({ condition: { status, reason } }) => status === 'False' && !temporaryReasons.has(reason),
  );
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

/** True only for a policy that is accepted as a whole: tools wait for it after an edit. */
function toProgrammed({ result: { problems, inForce }, programmed }: PolicyObservation): Condition {
  if (problems.length === 0) return programmed;
  const { message } = programmed;
  const text =
    inForce === undefined
      ? 'no version of this policy is in force, and its requests are denied'
      : `generation ${inForce.generation}, which stays in force: ${message}`;
  return { status: 'False', reason: 'NotAccepted', message: text };
}

/**
 * A policy that others replace has the reasons of GEP-713. It is Ready nevertheless: the owners of
 * both want it so.
 */
function toProgrammedAt({ replaced }: PolicyAncestor, programmed: Condition): Condition {
  if (replaced === undefined || programmed.status !== 'True') return programmed;
  const { reason, message } = replaced;
  if (reason === 'Overridden') return { status: 'False', reason, message };
  return { status: 'True', reason, message: `${programmed.message}; ${message}` };
}

/** Exists only while it is True. */
function toOverridden({ overridden }: PolicyAncestor): Conditions {
  if (overridden === undefined) return [];
  return [['Overridden', { status: 'True', reason: 'Overridden', message: overridden }]];
}

const noTraffic: Condition = {
  status: 'Unknown',
  reason: 'NoTraffic',
  message:
    'no auth server had a check with this policy: send a request, and if this stays, let the gateway ask the auth server (external authorization)',
};

/** Auth servers do not say which Gateway a check is from, so one check counts for all of them. */
function toEnforced({ unenforced }: PolicyAncestor, isSeen: boolean): Condition {
  if (unenforced !== undefined) return { status: 'False', ...unenforced };
  if (!isSeen) return noTraffic;
  return { status: 'True', reason: 'Enforced', message: 'auth servers had checks with this policy' };
}

/** Ancestors with a problem come first, since their number is bounded. */
function chooseAncestors({ ancestors, namespace, name }: PolicyResult): readonly PolicyAncestor[] {
  if (ancestors.length === 0) {
    const [group = ''] = policyApiVersion.split('/');
    return [{ ref: { group, kind: policyKind, namespace, name } }];
  }
  const isEnforced = ({ unenforced }: PolicyAncestor): number => (unenforced === undefined ? 1 : 0);
  return ancestors.toSorted((a, b) => isEnforced(a) - isEnforced(b)).slice(0, maxAncestors);
}

/**
 * The condition Ready, for tools that know no other: the policy is in force, and no Gateway goes
 * around it. A policy that had no check yet is ready.
 */
function findReady(accepted: Condition, programmed: Condition, enforced: readonly Condition[]): Condition {
  const unenforced = enforced.find(({ status }) => status === 'False');
  return [accepted, programmed].find(({ status }) => status !== 'True') ?? unenforced ?? programmed;
}

/** Reasons that end without an act of an owner. */
const temporaryReasons: ReadonlySet<string> = new Set(['Pending', 'NoClients']);

/**
 * Conditions that exist only while they are True.
 * @see https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
 */
function toProgress(ready: Condition): Conditions {
  if (ready.status === 'True') return [];
  return [[temporaryReasons.has(ready.reason) ? 'Reconciling' : 'Stalled', { ...ready, status: 'True' }]];
}

const formatAll = (findings: readonly PolicyFinding[]): string => findings.map(formatFinding).join('\n');

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
