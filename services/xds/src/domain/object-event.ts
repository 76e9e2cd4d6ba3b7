import type { ObjectStatus } from './object-status.ts';

/** Something that an object's owner has to act upon. */
export interface ObjectEvent {
  /** Of the object. */
  readonly uid: string;
  readonly action: 'Accept' | 'Program';
  /** As that of the condition. */
  readonly reason: string;
  readonly note: string;
  /** Equal for what is the same event, whichever replica reports it and when. */
  readonly key: string;
}

/** The event that a status calls for: a refusal, a conflict, a rejection by limiters. Undefined when there is none. */
export function eventOf({
  uid,
  observedGeneration,
  version,
  accepted,
  programmed,
}: ObjectStatus): ObjectEvent | undefined {
  if (accepted.status === 'False') {
    const { reason, message } = accepted;
    return {
      uid,
      action: 'Accept',
      reason,
      note: message,
      key: [uid, reason, observedGeneration, message].join('\n'),
    };
  }
  if (programmed.reason !== 'Nacked') return undefined;
  const { reason, message } = programmed;
  // One event for each version that is rejected: how many limiters reject it, and in which words, changes with each of them.
  return { uid, action: 'Program', reason, note: message, key: [uid, reason, version].join('\n') };
}
