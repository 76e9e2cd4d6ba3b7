import { policyApiVersion, policyKind } from '@tollgate/policies/definition/resource-shape';
import type { Condition } from '../catalog/validation-result.ts';
import {
  type AncestorRef,
  formatFinding,
  type PolicyAncestor,
  type PolicyFinding,
  type PolicyResult,
} from '../policies/policy-result.ts';

/** The result of a policy, and what its clients say about it. */
export interface PolicyObservation {
  readonly result: PolicyResult;
  /** Whether clients have acknowledged the version in force. */
  readonly programmed: Condition;
  /** Whether an auth server had a check with it. */
  readonly isSeen: boolean;
  /** Clients still reconnect after the start of this process. */
  readonly isProvisional?: boolean;
}

export type ConditionType =
  | 'Accepted'
  | 'Programmed'
  | 'Enforced'
  | 'Overridden'
  | 'LimitsDoNotCoverAll'
  | 'Ready'
  | 'Reconciling'
  | 'Stalled';

/** Conditions by type, before they have a time. */
export type Conditions = readonly (readonly [ConditionType, Condition])[];

/** Bound of GEP-713. */
const maxAncestors = 16;

/** The conditions of a policy, and those at each ancestor. */
export function toPolicyConditions(observation: PolicyObservation): {
  readonly own: Conditions;
  readonly ancestors: readonly { readonly ref: AncestorRef; readonly conditions: Conditions }[];
} {
  const { accepted, programmed, ancestors } = evaluate(observation);
  const ready = findReady(
    accepted,
    programmed,
    ancestors.map(({ enforced }) => enforced),
  );
  return {
    own: [['Accepted', accepted], ...toUncovered(observation.result), ['Ready', ready], ...toProgress(ready)],
    ancestors: ancestors.map(({ ancestor, enforced }) => ({
      ref: ancestor.ref,
      conditions: [
        ['Accepted', accepted],
        ['Programmed', toProgrammedAt(ancestor, programmed)],
        ['Enforced', enforced],
        ...toOverridden(ancestor),
      ],
    })),
  };
}

/** Finds the condition that the owner has to act upon first; undefined if there is none. */
export function findActionNeeded(
  observation: PolicyObservation,
): { readonly type: 'Accepted' | 'Programmed' | 'Enforced'; readonly condition: Condition } | undefined {
  const { accepted, programmed, ancestors } = evaluate(observation);
  const candidates = [
    { type: 'Accepted', condition: accepted } as const,
    { type: 'Programmed', condition: programmed } as const,
    ...ancestors.map(({ enforced }) => ({ type: 'Enforced', condition: enforced }) as const),
  ];
  return candidates.find(
    ({ condition: { status, reason } }) => status === 'False' && !temporaryReasons.has(reason),
  );
}

function evaluate(observation: PolicyObservation) {
  const { result, isSeen } = observation;
  const accepted = toAccepted(result.problems);
  const chosen = chooseAncestors(result);
  const ancestors = chosen.map((ancestor) => ({
    ancestor,
    enforced: toEnforced(ancestor, { isSeen, ancestors: chosen.length }),
  }));
  return { accepted, programmed: toProgrammed(observation), ancestors };
}

export function toAccepted(problems: readonly PolicyFinding[]): Condition {
  const [problem] = problems;
  if (problem !== undefined) return { status: 'False', reason: problem.reason, message: formatAll(problems) };
  const message = 'the policy is valid, and may have its hosts or targets';
  return { status: 'True', reason: 'Accepted', message };
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
function toEnforced(
  { unenforced }: PolicyAncestor,
  { isSeen, ancestors }: { readonly isSeen: boolean; readonly ancestors: number },
): Condition {
  if (unenforced !== undefined) return { status: 'False', ...unenforced };
  if (!isSeen) return noTraffic;
  const message = `auth servers had checks with this policy${ancestors > 1 ? ', from one of its Gateways' : ''}`;
  return { status: 'True', reason: 'Enforced', message };
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

/** Exists only while it is True. */
function toUncovered({ warnings }: PolicyResult): Conditions {
  const uncovered = warnings.filter(({ reason }) => reason === 'LimitsDoNotCoverAll');
  if (uncovered.length === 0) return [];
  const message = formatAll(uncovered);
  return [['LimitsDoNotCoverAll', { status: 'True', reason: 'LimitsDoNotCoverAll', message }]];
}

const formatAll = (findings: readonly PolicyFinding[]): string => findings.map(formatFinding).join('\n');
