import type { PolicyWarning } from '@tollgate/policies/compile/compile';
import type { RuleProblem } from '@tollgate/rules/problem';
import type { ConfigObject, SourceProblem } from '../catalog/source.ts';
import type { PolicyProblemReason, unenforcedReasons } from '../metrics.ts';

/** Why a policy has less effect than intended, or none. */
export type PolicyReason = PolicyProblemReason | PolicyWarning['reason'];

/** A problem or a warning of a policy. The source is the label of its manifest. */
export interface PolicyFinding extends SourceProblem {
  readonly reason: PolicyReason;
  /** JSON path in the manifest. */
  readonly field: string | undefined;
}

/** A Gateway that a policy has an effect at; a target that no Gateway has is its own ancestor. */
export interface PolicyAncestor {
  readonly ref: AncestorRef;
  /** Why the Gateway does not ask auth servers; undefined if nothing says so. */
  readonly unenforced?: Unenforced | undefined;
  /** Which more specific policies apply instead; undefined without any. */
  readonly replaced?: Replaced | undefined;
  /** Whose overrides hold in addition; undefined without any. */
  readonly overridden?: string | undefined;
}

/** @see GEP-713 of Gateway API */
interface Replaced {
  readonly reason: 'PartiallyProgrammed' | 'Overridden';
  readonly message: string;
}

export interface Unenforced {
  readonly reason: (typeof unenforcedReasons)[number];
  readonly message: string;
}

/** @see ParentReference of Gateway API */
export interface AncestorRef {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** A listener, or a rule of a route. */
  readonly sectionName?: string | undefined;
}

/** The result of a policy: its problems, and the version in force. */
export interface PolicyResult {
  /** Identifies the object in its source. */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  /** File and number of the document, or the id. */
  readonly label: string;
  /** Generation that was validated. */
  readonly generation: number;
  /** Without problems, this generation is in force. */
  readonly problems: readonly PolicyFinding[];
  readonly warnings: readonly PolicyFinding[];
  /** Gateways that its targets belong to, in order. Empty for a policy by hosts. */
  readonly ancestors: readonly PolicyAncestor[];
  /** Why the policy stays in force although its object was deleted; undefined if it exists. */
  readonly heldBack: string | undefined;
  /**
   * Hosts that are allowed for the namespace, or were while the policy had them. It must be known
   * after a restart, since their requests are denied when the permission ends.
   */
  readonly allowedHosts: readonly string[];
  /** The version in force; undefined when there never was a valid one, and its hosts are denied. */
  readonly inForce: { readonly generation: number; readonly spec: unknown } | undefined;
}

/** Gets results of policies: the log, stored versions, a status. */
export interface PolicyReporter {
  /** The result is new or differs from the last one. */
  put(result: PolicyResult): void;
  /** Auth servers and limiters get all results that were put. */
  published?(): void;
  /** The policy was deleted, and is no longer in force. */
  forget(id: string): void;
}

export const labelOf = ({ label, id }: Pick<ConfigObject, 'label' | 'id'>): string => label ?? id;

export function toFinding(
  object: Pick<ConfigObject, 'label' | 'id'>,
  { field, message, hint }: Pick<RuleProblem, 'field' | 'message' | 'hint'>,
  reason: PolicyReason = 'Invalid',
): PolicyFinding {
  const text = hint === undefined ? message : `${message} (${hint})`;
  return { source: labelOf(object), field, message: text, reason };
}

/** `spec.hosts[1]: 'B' is not allowed`. */
export function formatFinding({ field, message }: PolicyFinding): string {
  return field === undefined ? message : `${field}: ${message}`;
}
