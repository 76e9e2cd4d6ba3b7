import type { Condition, ValidationResult } from '../catalog/validation-result.ts';
import type { DomainStatus } from './domain-status.ts';

/** The status of one RateLimitConfig. @see crds/ratelimitconfigs.yaml */
export interface ObjectStatus {
  /** `namespace/name`. */
  readonly id: string;
  readonly uid: string;
  /** The validated generation. */
  readonly observedGeneration: number;
  /** Limits of the version in force. */
  readonly rules: number;
  /** Version of the domain's ADS resource; empty when the domain is not served. */
  readonly version: string;
  /** Namespace that owns the domain, if it is another one; read again after a restart. */
  readonly domainOwner?: string | undefined;
  /** The newest valid version; read again after a restart. */
  readonly lastValid?: ValidationResult['lastValid'];
  readonly accepted: Condition;
  readonly programmed: Condition;
  /** Whether its rules have matched requests; undefined while it is not known. */
  readonly matched?: Condition | undefined;
  /** Clients still reconnect after the start of this process. */
  readonly isProvisional?: boolean;
}

/** The status of an object, from its validation result and the status of its domain. */
export function toObjectStatus(
  result: ValidationResult,
  domain: DomainStatus,
  { matched, isProvisional = false }: Pick<ObjectStatus, 'matched' | 'isProvisional'> = {},
): ObjectStatus {
  const { id, uid, generation, inForce, rules, domainOwner, lastValid, accepted } = result;
  return {
    id,
    uid,
    observedGeneration: generation,
    rules,
    version: inForce === undefined ? '' : domain.version,
    ...(domainOwner !== undefined && { domainOwner }),
    ...(lastValid && { lastValid }),
    accepted,
    programmed: toProgrammed(result, domain),
    ...(matched && { matched }),
    ...(isProvisional && { isProvisional }),
  };
}

/** True only for an object that is accepted as a whole: tools wait for it after an edit. */
function toProgrammed(
  { accepted, inForce, generation }: ValidationResult,
  { programmed }: DomainStatus,
): Condition {
  if (accepted.status === 'True') return programmed;
  const { message } = programmed;
  const text =
    inForce === undefined
      ? 'nothing of this object is in force'
      : inForce === generation
        ? `what is accepted of generation ${inForce}: ${message}`
        : `generation ${inForce}, which stays in force: ${message}`;
  return { status: 'False', reason: 'NotAccepted', message: text };
}

/**
 * The condition Ready, for tools that know no other: the rules are accepted, and every limiter
 * enforces them, or has them on trial.
 * @see https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
 */
export function toReady({ accepted, programmed }: Pick<ObjectStatus, 'accepted' | 'programmed'>): Condition {
  if (accepted.status !== 'True') return accepted;
  if (programmed.status !== 'True') return programmed;
  return { ...programmed, reason: accepted.reason === 'OnTrial' ? 'OnTrial' : 'Enforced' };
}

/** Whether the owner of the object has to act: it is not accepted, or limiters reject it. */
export function needsAction({ accepted, programmed }: ObjectStatus): boolean {
  return accepted.status === 'False' || programmed.reason === 'Nacked';
}
