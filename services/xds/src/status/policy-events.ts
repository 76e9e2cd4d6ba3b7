import { accessPolicies } from '../kube/resources.ts';
import type { EventKind, ObjectEvent } from './events.ts';
import { findActionNeeded, type PolicyObservation } from './policy-conditions.ts';

const actions = { Accepted: 'Accept', Programmed: 'Program', Enforced: 'Enforce' } as const;

/** `uidOf` returns the UID of the object with this id; undefined for one that was deleted. */
export function policyEvents(uidOf: (id: string) => string | undefined): EventKind<PolicyObservation> {
  return {
    resource: accessPolicies,
    idOf: ({ result }) => result.id,
    toEvent: (observation) => {
      const uid = uidOf(observation.result.id);
      return uid === undefined ? undefined : toPolicyEvent(observation, uid);
    },
  };
}

/** The event for a policy that is not accepted, refused by a server, or not enforced. */
function toPolicyEvent(observation: PolicyObservation, uid: string): ObjectEvent | undefined {
  const needed = findActionNeeded(observation);
  if (needed === undefined) return undefined;
  const { reason, message: note } = needed.condition;
  const key = [uid, reason, observation.result.generation];
  return {
    ...{ uid, action: actions[needed.type], reason, note },
    // One event per generation, because the message changes with each server that refuses it.
    key: (needed.type === 'Programmed' ? key : [...key, note]).join('\n'),
  };
}
