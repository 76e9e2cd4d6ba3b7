import { type Condition, isSameCondition } from '../status/conditions.ts';
import type { DuplicateRule, MergeResult } from './domains.ts';
import { type CatalogObject, compareAge, displayName, type ValidVersion } from './validate.ts';

export const acceptedReasons = ['Accepted', 'Invalid', 'DuplicateKey', 'DomainConflict'] as const;

export type AcceptedReason = (typeof acceptedReasons)[number];

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
  /** The generation whose rules are in force; undefined when there is none. */
  readonly inForce: number | undefined;
  /** Limits of the object in force. */
  readonly rules: number;
  /** Namespace that the domain belongs to or is reserved for, if it is another one. */
  readonly domainOwner: string | undefined;
  readonly accepted: Condition & { readonly reason: AcceptedReason };
}

export function isSameResult(a: ValidationResult, b: ValidationResult): boolean {
  return (
    a.uid === b.uid &&
    a.generation === b.generation &&
    a.domain === b.domain &&
    a.inForce === b.inForce &&
    a.rules === b.rules &&
    a.domainOwner === b.domainOwner &&
    isSameCondition(a.accepted, b.accepted)
  );
}

/** `alone`: the object is the only one of its domain. `merge` is undefined if it is invalid. */
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
    inForce: isInForce ? valid?.generation : undefined,
    rules,
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
  if (problems !== undefined)
    return notAccepted('Invalid', `not valid; ${describeInForce(valid, merge)}:\n${problems}`);
  if (merge.type === 'conflict')
    return notAccepted('DomainConflict', describeConflict(object, valid, merge.winner));
  if (merge.type === 'reserved') return notAccepted('DomainConflict', describeReservation(valid, merge));
  if (merge.duplicates.length > 0) return notAccepted('DuplicateKey', describeDuplicates(object, merge));
  return { status: 'True', reason: 'Accepted', message: describeLimits(valid, alone) };
}

function notAccepted(reason: AcceptedReason, message: string): Accepted {
  return { status: 'False', reason, message };
}

/** What of the last valid version is in force while the current one is invalid. */
function describeInForce({ generation, document }: ValidVersion, merge: MergeResult): string {
  if (merge.type === 'conflict')
    return `nothing of this object is in force, because domain '${document.domain}' belongs to namespace '${merge.winner.namespace}'`;
  if (merge.type === 'reserved')
    return `nothing of this object is in force, because domain '${document.domain}' is kept for namespace '${merge.namespace}'`;
  if (merge.duplicates.length === 0) return `generation ${generation} stays in force`;
  return `generation ${generation} stays in force but for what ${listOlder(merge.duplicates)} has too`;
}

function describeConflict(object: CatalogObject, { document }: ValidVersion, winner: CatalogObject): string {
  return (
    `domain '${document.domain}' belongs to namespace '${winner.namespace}', whose object ${displayName(winner)} ${describePrecedence(winner, object)}; ` +
    'nothing of this object is in force: choose another domain'
  );
}

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
const maxComposite = 200;

function describeDuplicates(
  object: CatalogObject,
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
  const rest = rules === 0 ? 'nothing of this object is in force' : `the other ${others} in force`;
  return `top-level rules that another object of the namespace has for this domain are left out; ${rest}:\n${lines.join('\n')}`;
}

/** Files are ordered by path, not by age, and an owner keeps its domain with a younger object. */
function describePrecedence(first: CatalogObject, second: CatalogObject): string {
  if (compareAge(first, second) > 0) return 'has had it before';
  return first.createdMs < second.createdMs ? 'is older' : 'comes first';
}

function listOlder(duplicates: readonly DuplicateRule[]): string {
  const names = [...new Set(duplicates.map(({ older }) => displayName(older)))];
  return names.length > 1 ? `${names[0]} and others` : `${names[0]}`;
}

function describeLimits({ document, rules, warnings }: ValidVersion, alone: boolean): string {
  const text = `${rules} ${rules === 1 ? 'limit' : 'limits'} for domain '${document.domain}'`;
  // With other objects in the domain, a limit that looks unused may be referenced by one of them.
  return warnings === '' || !alone ? text : `${text}; to be checked:\n${warnings}`;
}
