import type { Condition, ObjectStatus } from './object-status.ts';
import type { DomainProgress } from './programmed.ts';
import { sameCondition, type Verdict } from './verdict.ts';

/** The status of an object, from what is thought of it and how far its domain has come. */
export function statusOf(verdict: Verdict, progress: DomainProgress): ObjectStatus {
  const { id, uid, generation, inForce, rules, domainOwner, accepted } = verdict;
  const { version, connected, acknowledged } = progress;
  const served = inForce !== undefined;
  return {
    id,
    uid,
    observedGeneration: generation,
    rules,
    version: served ? version : '',
    limiters: { connected, acknowledged: served ? acknowledged : 0 },
    ...(domainOwner !== undefined && { domainOwner }),
    accepted: conditionOnly(accepted),
    programmed: programmedOf(verdict, progress),
  };
}

/**
 * True only for what is accepted as a whole: whoever waits for it after an edit must not be told of the version before,
 * nor of the part of this one that is in force.
 */
function programmedOf(
  { accepted, inForce, generation }: Verdict,
  { programmed: { status, reason, message } }: DomainProgress,
): Condition {
  if (accepted.status === 'True') return { status, reason, message };
  const text =
    inForce === undefined
      ? 'nothing of this object is in force'
      : inForce === generation
        ? `what is accepted of generation ${inForce}: ${message}`
        : `generation ${inForce}, which stays in force: ${message}`;
  return { status: 'False', reason: 'NotAccepted', message: text };
}

const conditionOnly = ({ status, reason, message }: Condition): Condition => ({ status, reason, message });

/** Says the same? Then it need not be written. */
export function sameStatus(a: ObjectStatus, b: ObjectStatus): boolean {
  return (
    a.uid === b.uid &&
    a.observedGeneration === b.observedGeneration &&
    a.rules === b.rules &&
    a.version === b.version &&
    a.domainOwner === b.domainOwner &&
    a.limiters.connected === b.limiters.connected &&
    a.limiters.acknowledged === b.limiters.acknowledged &&
    sameCondition(a.accepted, b.accepted) &&
    sameCondition(a.programmed, b.programmed)
  );
}
