import type { Condition } from '../status/conditions.ts';
import type { DuplicateRule, Outcome } from './domains.ts';
import { type CatalogEntry, compareAge, type GoodVersion, nameOf } from './validate.ts';

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

/** What the condition Accepted says of an object, and how much of it is in force. */
export function judge(entry: CatalogEntry, outcome: Outcome | undefined, alone: boolean): Verdict {
  const { id, uid, generation, label = id, good } = entry;
  const rules = outcome?.type === 'merged' ? outcome.rules : 0;
  const isInForce = outcome?.type === 'merged' && !(outcome.duplicates.length > 0 && rules === 0);
  return {
    id,
    uid,
    generation,
    label,
    domain: good?.document.domain,
    inForce: isInForce ? good?.generation : undefined,
    rules,
    domainOwner: ownerOf(outcome),
    accepted: acceptedOf(entry, outcome, alone),
  };
}

/** Of a domain that the object does not have. */
function ownerOf(outcome: Outcome | undefined): string | undefined {
  if (outcome?.type === 'conflict') return outcome.winner.namespace;
  return outcome?.type === 'kept' ? outcome.namespace : undefined;
}

function acceptedOf(entry: CatalogEntry, outcome: Outcome | undefined, alone: boolean): Verdict['accepted'] {
  const { good, problems } = entry;
  if (good === undefined || outcome === undefined)
    return refused('Invalid', `not valid, and nothing of this object is in force:\n${problems ?? ''}`);
  if (problems !== undefined)
    return refused('Invalid', `not valid; ${standing(good, outcome)}:\n${problems}`);
  if (outcome.type === 'conflict')
    return refused('DomainConflict', conflictText(entry, good, outcome.winner));
  if (outcome.type === 'kept') return refused('DomainConflict', keptText(good, outcome));
  if (outcome.duplicates.length > 0) return refused('DuplicateKey', duplicateText(entry, outcome));
  return { status: 'True', reason: 'Accepted', message: acceptedText(good, alone) };
}

const refused = (reason: Verdict['accepted']['reason'], message: string): Verdict['accepted'] => ({
  status: 'False',
  reason,
  message,
});

/** What of the last good version is in force, while the present one is not valid. */
function standing({ generation, document }: GoodVersion, outcome: Outcome): string {
  if (outcome.type === 'conflict')
    return `nothing of this object is in force, because domain '${document.domain}' belongs to namespace '${outcome.winner.namespace}'`;
  if (outcome.type === 'kept')
    return `nothing of this object is in force, because domain '${document.domain}' is kept for namespace '${outcome.namespace}'`;
  if (outcome.duplicates.length === 0) return `generation ${generation} stays in force`;
  return `generation ${generation} stays in force but for what ${olderNames(outcome.duplicates)} has too`;
}

function conflictText(entry: CatalogEntry, { document }: GoodVersion, winner: CatalogEntry): string {
  return (
    `domain '${document.domain}' belongs to namespace '${winner.namespace}', whose object ${nameOf(winner)} ${precedence(winner, entry)}; ` +
    'nothing of this object is in force: choose another domain'
  );
}

function keptText({ document }: GoodVersion, { namespace, untilMs }: Outcome & { type: 'kept' }): string {
  const until = new Date(untilMs).toISOString();
  return (
    `domain '${document.domain}' belonged to namespace '${namespace}', and is kept for it until ${until}; ` +
    'nothing of this object is in force: choose another domain, or wait'
  );
}

/** Most duplicates told of one object. */
const maxDuplicates = 10;

/** Longest rule that is repeated in a message. */
const maxComposite = 200;

function duplicateText(entry: CatalogEntry, { duplicates, rules }: Outcome & { type: 'merged' }): string {
  const lines = duplicates
    .slice(0, maxDuplicates)
    .map(
      ({ composite, older }) =>
        `'${composite.slice(0, maxComposite)}' is already in ${nameOf(older)}, which ${precedence(older, entry)}`,
    );
  const left = duplicates.length - lines.length;
  if (left > 0) lines.push(`and ${left} more`);
  const rest = rules === 0 ? 'nothing of this object is in force' : `the other ${limits(rules)} in force`;
  return `top-level rules that another object of the namespace has for this domain are left out; ${rest}:\n${lines.join('\n')}`;
}

/** Why one goes before the other: files have no age, they have an order, and an owner keeps its domain with a younger object. */
const precedence = (first: CatalogEntry, second: CatalogEntry): string => {
  if (compareAge(first, second) > 0) return 'has had it before';
  return first.createdMs < second.createdMs ? 'is older' : 'comes first';
};

function olderNames(duplicates: readonly DuplicateRule[]): string {
  const names = [...new Set(duplicates.map(({ older }) => nameOf(older)))];
  return names.length > 1 ? `${names[0]} and others` : `${names[0]}`;
}

function acceptedText({ document, rules, warnings }: GoodVersion, alone: boolean): string {
  const text = `${rules} ${rules === 1 ? 'limit' : 'limits'} for domain '${document.domain}'`;
  // A limit that is replaced may be in another object of the domain, which the object alone knows nothing of.
  return warnings === '' || !alone ? text : `${text}; to be checked:\n${warnings}`;
}

const limits = (count: number): string => (count === 1 ? 'limit is' : `${count} limits are`);
