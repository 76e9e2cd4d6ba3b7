import { isDeepStrictEqual } from 'node:util';
import { readStoredManifest, type StoredManifest, toStoredManifest } from '../catalog/stored-version.ts';
import { toList, toText, toValues, type Values } from '../gateway-api/objects.ts';
import { formatFinding, type PolicyFinding, type PolicyResult } from '../policies/policy-result.ts';

/** A `metav1.Condition`. */
interface PolicyCondition {
  readonly type: 'Accepted' | 'LimitsDoNotCoverAll' | 'Ready' | 'Stalled';
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
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
  readonly conditions: readonly PolicyCondition[];
}

/** Bounds of the CRD, less the ellipsis. */
const maxMessageChars = 32_000;
const maxColumnChars = 1_000;

/**
 * Converts a result to the status of its object. A condition keeps its last transition time from
 * `current`, the present status, unless its status changes. Ready is written only while it is
 * False: whether servers have acknowledged a policy is not known here.
 */
export function toPolicyStatus(result: PolicyResult, current: unknown, nowMs: number): PolicyStatus {
  const { generation: observedGeneration, problems, warnings, inForce, allowedHosts } = result;
  const toCondition = (
    type: PolicyCondition['type'],
    status: PolicyCondition['status'],
    { reason, message }: Pick<PolicyCondition, 'reason' | 'message'>,
  ): PolicyCondition => {
    const before = toList(toValues(current).conditions).find((condition) => condition.type === type);
    const knownTime = before?.status === status ? toText(before.lastTransitionTime) : undefined;
    return {
      ...{ type, status, reason, message: cut(message, maxMessageChars), observedGeneration },
      lastTransitionTime: knownTime ?? new Date(nowMs).toISOString().replace(/\.\d+Z$/, 'Z'),
    };
  };
  const [problem] = problems;
  const uncovered = warnings.filter(({ reason }) => reason === 'LimitsDoNotCoverAll');
  const lastValid = chooseLastValid(result, current);
  const refused = problem && { reason: problem.reason, message: formatAll(problems) };
  return {
    observedGeneration,
    ...toColumns(toValues(inForce?.spec)),
    ...(allowedHosts.length > 0 && { allowedHosts }),
    ...(lastValid && { lastValid }),
    conditions: [
      refused === undefined
        ? toCondition('Accepted', 'True', { reason: 'Accepted', message: 'the policy is in force' })
        : toCondition('Accepted', 'False', refused),
      ...(uncovered.length === 0
        ? []
        : [
            toCondition('LimitsDoNotCoverAll', 'True', {
              ...{ reason: 'LimitsDoNotCoverAll', message: formatAll(uncovered) },
            }),
          ]),
      ...(refused === undefined
        ? []
        : [toCondition('Ready', 'False', refused), toCondition('Stalled', 'True', refused)]),
    ],
  };
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

/** The version in force in short; empty if there is none. */
function toColumns(spec: Values): Pick<PolicyStatus, 'target' | 'access' | 'limits'> {
  const { hosts, targetRefs, access, limits, defaults } = spec;
  const targets = toList(targetRefs).map(({ kind, name, sectionName }) =>
    [kind, name, ...(sectionName === undefined ? [] : [sectionName])].join('/'),
  );
  const column = (texts: readonly unknown[]): string => cut(texts.join(','), maxColumnChars);
  const { type = 'Authenticated' } = toValues(access ?? toValues(defaults).access);
  const named = toList(limits ?? toValues(defaults).limits).map(({ name }) => name);
  const isKnown = hosts !== undefined || targetRefs !== undefined;
  return {
    target: column(Array.isArray(hosts) ? hosts : targets),
    access: isKnown ? String(type) : '',
    limits: column(named),
  };
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
