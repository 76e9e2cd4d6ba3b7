import type { Condition } from './object-status.ts';

/** What the catalog makes of an object. */
export interface Verdict {
  readonly id: string;
  readonly uid: string;
  /** The generation that was judged. */
  readonly generation: number;
  /** What messages call the object. */
  readonly label: string;
  /** The domain it takes part in, or would; undefined when no version of it could be read. */
  readonly domain: string | undefined;
  /** The generation whose rules are in force; undefined when nothing of the object is. */
  readonly inForce: number | undefined;
  /** Limits of the object in force. */
  readonly rules: number;
  /** Namespace that the domain belongs to, or is kept for; undefined when it is that of the object. */
  readonly domainOwner: string | undefined;
  readonly accepted: Condition & { readonly reason: AcceptedReason };
}

/** Reasons of the condition Accepted. */
export const acceptedReasons = ['Accepted', 'Invalid', 'DuplicateKey', 'DomainConflict'] as const;

/** One of them. */
export type AcceptedReason = (typeof acceptedReasons)[number];

/** Says the same of the same version? Then nobody need hear of it. */
export function sameVerdict(a: Verdict, b: Verdict): boolean {
  return (
    a.uid === b.uid &&
    a.generation === b.generation &&
    a.domain === b.domain &&
    a.inForce === b.inForce &&
    a.rules === b.rules &&
    a.domainOwner === b.domainOwner &&
    sameCondition(a.accepted, b.accepted)
  );
}

/** Reads the same? */
export function sameCondition(a: Condition, b: Condition): boolean {
  return a.status === b.status && a.reason === b.reason && a.message === b.message;
}
