/** The status of one RateLimitConfig. @see contract of the CRD: crds/ */
export interface ObjectStatus {
  /** `namespace/name`. */
  readonly id: string;
  readonly uid: string;
  /** The generation that was judged. */
  readonly observedGeneration: number;
  /** Limits in this object, of its version in force. */
  readonly rules: number;
  /** Version of the domain's ADS resource; empty when the domain is not served. */
  readonly version: string;
  readonly limiters: { readonly connected: number; readonly acknowledged: number };
  /** Namespace that the domain belongs to, where that is another one: read again after a restart. */
  readonly domainOwner?: string | undefined;
  readonly accepted: Condition;
  readonly programmed: Condition;
}

/** One condition, as in metav1.Condition but for the times, which its writer adds. */
export interface Condition {
  readonly status: 'True' | 'False' | 'Unknown';
  /** CamelCase, of a fixed set. */
  readonly reason: string;
  /** For people: what is wrong and where. */
  readonly message: string;
}

/**
 * The condition Ready, which tools that know no others wait for: the rules are accepted, and every limiter enforces them.
 * @see https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
 */
export function readyOf({ accepted, programmed }: Pick<ObjectStatus, 'accepted' | 'programmed'>): Condition {
  if (accepted.status !== 'True') return accepted;
  return programmed.status === 'True' ? { ...programmed, reason: 'Enforced' } : programmed;
}
