import { policyDomainPrefix } from '@tollgate/rules/rule-document';
import { isReserved } from './domain-claims.ts';
import type { DuplicateRule, MergeResult } from './merge.ts';
import { type CatalogObject, compareAge, describeGeneration, type ValidVersion } from './validation.ts';

export const acceptedReasons = [
  'Accepted',
  'OnTrial',
  'Invalid',
  'DuplicateKey',
  'DomainConflict',
  'Held',
  'DomainNotAllowed',
] as const;

type AcceptedReason = (typeof acceptedReasons)[number];

/** A metav1.Condition without its times, which the writer adds. */
export interface Condition {
  readonly status: 'True' | 'False' | 'Unknown';
  /** CamelCase, from a fixed set. */
  readonly reason: string;
  readonly message: string;
}

/** The result of validating an object, on its own and against the other objects of its domain. */
export interface ValidationResult {
  readonly id: string;
  readonly uid: string;
  /** The validated generation. */
  readonly generation: number;
  /** Name of the object in messages. */
  readonly label: string;
  /** Undefined when no version of the object was valid. */
  readonly domain: string | undefined;
  /** Class of the limiters that it is for; absent for all. */
  readonly limiterClass?: string | undefined;
  /** The generation whose rules are in force, or on trial; undefined when there is none. */
  readonly inForce: number | undefined;
  /** Limits of the object in force, or on trial. */
  readonly rules: number;
  /** The newest valid version, to be stored; undefined when there is none. */
  readonly lastValid?: Pick<ValidVersion, 'generation' | 'spec'> | undefined;
  /** Namespace that the domain belongs to or is reserved for, if it is another one. */
  readonly domainOwner: string | undefined;
  readonly accepted: Condition & { readonly reason: AcceptedReason };
}

/**
 * `alone`: the object is the only one of its domain, or the only one on trial. `merge` is undefined
 * if it is invalid.
 */
export function toValidationResult(
  object: CatalogObject,
  merge: MergeResult | undefined,
  alone: boolean,
): ValidationResult {
  const { id, uid, generation, label = id, valid } = object;
  const rules = merge?.type === 'merged' ? merge.rules : 0;
  const isInForce = merge?.type === 'merged' && !(merge.duplicates.length > 0 && rules === 0);
  return {
    id,
    uid,
    generation,
    label,
    domain: valid?.document.domain,
    ...(valid?.document.limiterClass !== undefined && { limiterClass: valid.document.limiterClass }),
    inForce: isInForce ? valid?.generation : undefined,
    rules,
    ...(valid && { lastValid: { generation: valid.generation, spec: valid.spec } }),
    domainOwner: getDomainOwner(merge),
    accepted: toAccepted(object, merge, alone),
  };
}

function getDomainOwner(merge: MergeResult | undefined): string | undefined {
  if (merge?.type === 'conflict') return merge.winner.namespace;
  return merge?.type === 'reserved' ? merge.namespace : undefined;
}

type Accepted = ValidationResult['accepted'];

function toAccepted(object: CatalogObject, merge: MergeResult | undefined, alone: boolean): Accepted {
  const { valid, problems } = object;
  if (valid === undefined || merge === undefined)
    return notAccepted('Invalid', `not valid, and nothing of this object is in force:\n${problems ?? ''}`);
  if (object.heldBack !== undefined)
    return notAccepted('Held', `deleted, but ${describeInForce(valid, merge)}: ${object.heldBack}`);
  if (problems !== undefined)
    return notAccepted('Invalid', `not valid; ${describeInForce(valid, merge)}:\n${problems}`);
  if (merge.type === 'conflict')
    return notAccepted('DomainConflict', describeConflict(object, valid, merge.winner));
  if (merge.type === 'reserved') return notAccepted('DomainConflict', describeReservation(valid, merge));
  if (merge.type === 'refused')
    return notAccepted(
      'DomainNotAllowed',
      `domain ${describeRefusal(object, valid.document)}; nothing of this object is in force: ${describeAllowed(object, valid.document)}`,
    );
  if (merge.duplicates.length > 0)
    return notAccepted('DuplicateKey', describeDuplicates(object, valid, merge));
  const reason = valid.isOnTrial ? 'OnTrial' : 'Accepted';
  const limits = describeLimits(valid, alone);
  if (object.claim !== 'tolerated') return { status: 'True', reason, message: limits };
  const tolerated = `domain ${describeRefusal(object, valid.document)}, and stays in force because it was before`;
  return {
    status: 'True',
    reason,
    message: `${limits}\n${tolerated}: list the namespace in XDS_ANY_DOMAIN_NAMESPACES`,
  };
}

function notAccepted(reason: AcceptedReason, message: string): Accepted {
  return { status: 'False', reason, message };
}

/**
 * Describes the part of the last valid version that is in force while the current one is invalid.
 */
function describeInForce(version: ValidVersion, merge: MergeResult): string {
  const { document } = version;
  if (merge.type === 'conflict')
    return `nothing of this object is in force, because domain '${document.domain}' belongs to namespace '${merge.winner.namespace}'`;
  if (merge.type === 'reserved')
    return `nothing of this object is in force, because domain '${document.domain}' is kept for namespace '${merge.namespace}'`;
  if (merge.type === 'refused')
    return `nothing of this object is in force, because domain '${document.domain}' does not belong to its namespace`;
  const stays = `${describeGeneration(version)} stays ${describeState(version)}`;
  if (merge.duplicates.length === 0) return stays;
  return `${stays} but for what ${listOlder(merge.duplicates)} has too`;
}

const describeState = ({ isOnTrial }: ValidVersion): string => (isOnTrial ? 'on trial' : 'in force');

function describeConflict(object: CatalogObject, { document }: ValidVersion, winner: CatalogObject): string {
  return (
    `domain '${document.domain}' belongs to namespace '${winner.namespace}', whose object ${displayName(winner)} ${describePrecedence(winner, object)}; ` +
    'nothing of this object is in force: choose another domain'
  );
}

type Claimed = Pick<ValidVersion['document'], 'domain'>;

export function describeRefusal(
  { namespace }: Pick<CatalogObject, 'namespace'>,
  { domain }: Claimed,
): string {
  const reason = isReserved(domain)
    ? 'is reserved for the limits of access policies'
    : `does not belong to namespace '${namespace}'`;
  return `'${domain}' ${reason}`;
}

export const describeAllowed = (
  { namespace }: Pick<CatalogObject, 'namespace'>,
  { domain }: Claimed,
): string =>
  isReserved(domain)
    ? `use a domain that does not begin with '${policyDomainPrefix}'`
    : `use '${namespace}' or '${namespace}/<name>'`;

function describeReservation(
  { document }: ValidVersion,
  { namespace, untilMs }: MergeResult & { type: 'reserved' },
): string {
  const until = new Date(untilMs).toISOString();
  return (
    `domain '${document.domain}' belonged to namespace '${namespace}', and is kept for it until ${until}; ` +
    'nothing of this object is in force: choose another domain, or wait'
  );
}

/** Duplicates listed per object. */
const maxDuplicates = 10;

/** Characters of a rule in a message. */
export const maxComposite = 200;

function describeDuplicates(
  object: CatalogObject,
  valid: ValidVersion,
  { duplicates, rules }: MergeResult & { type: 'merged' },
): string {
  const lines = duplicates
    .slice(0, maxDuplicates)
    .map(
      ({ composite, older }) =>
        `'${composite.slice(0, maxComposite)}' is already in ${displayName(older)}, which ${describePrecedence(older, object)}`,
    );
  const left = duplicates.length - lines.length;
  if (left > 0) lines.push(`and ${left} more`);
  const others = rules === 1 ? 'limit is' : `${rules} limits are`;
  const rest =
    rules === 0
      ? `nothing of this object is ${describeState(valid)}`
      : `the other ${others} ${describeState(valid)}`;
  return `top-level rules that another object of the namespace has for this domain are left out; ${rest}:\n${lines.join('\n')}`;
}

/** Files are ordered by path, not by age, and an owner keeps its domain with a younger object. */
export function describePrecedence(first: CatalogObject, second: CatalogObject): string {
  if (first.claim === 'allowed' && second.claim === 'tolerated') return 'is in the namespace of that name';
  if (compareAge(first, second) > 0) return 'has had it before';
  return first.createdMs < second.createdMs ? 'is older' : 'comes first';
}

function listOlder(duplicates: readonly DuplicateRule[]): string {
  const names = [...new Set(duplicates.map(({ older }) => displayName(older)))];
  return names.length > 1 ? `${names[0]} and others` : `${names[0]}`;
}

function describeLimits({ document, isOnTrial, rules, warnings }: ValidVersion, alone: boolean): string {
  const limits = `${rules} ${rules === 1 ? 'limit' : 'limits'} for domain '${document.domain}'`;
  const text = isOnTrial
    ? `${limits} on trial: limiters show what would be refused, and refuse nothing`
    : limits;
  // With other objects in the domain, a limit that looks unused may be referenced by one of them.
  return warnings === '' || !alone ? text : `${text}; to be checked:\n${warnings}`;
}

/** The id, and the file if there is one. */
export function displayName({ id, label, heldBack }: CatalogObject): string {
  const name = label === undefined ? id : `${id} (${label})`;
  return heldBack === undefined ? name : `${name}, whose deletion is held back`;
}
