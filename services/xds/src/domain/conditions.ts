import type { CatalogEntry, GoodVersion } from './catalog-entry.ts';
import type { DuplicateRule, Outcome } from './resolve-domain.ts';
import type { Verdict } from './verdict.ts';

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
    accepted: acceptedOf(entry, outcome, alone),
  };
}

function acceptedOf(entry: CatalogEntry, outcome: Outcome | undefined, alone: boolean): Verdict['accepted'] {
  const { good, problems } = entry;
  if (good === undefined || outcome === undefined)
    return refused('Invalid', `not valid, and nothing of this object is in force:\n${problems ?? ''}`);
  if (problems !== undefined)
    return refused('Invalid', `not valid; ${standing(good, outcome)}:\n${problems}`);
  if (outcome.type === 'conflict') return refused('DomainConflict', conflictText(good, outcome.winner));
  if (outcome.duplicates.length > 0) return refused('DuplicateKey', duplicateText(outcome));
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
    return `generation ${generation} was, but domain '${document.domain}' belongs to namespace '${outcome.winner.namespace}'`;
  if (outcome.duplicates.length === 0) return `generation ${generation} stays in force`;
  return `generation ${generation} stays in force but for what ${olderIds(outcome.duplicates)} has too`;
}

function conflictText({ document }: GoodVersion, winner: CatalogEntry): string {
  return (
    `domain '${document.domain}' belongs to namespace '${winner.namespace}', whose object ${winner.id} is older; ` +
    'nothing of this object is in force: choose another domain'
  );
}

/** Most duplicates told of one object. */
const maxDuplicates = 10;

function duplicateText({ duplicates, rules }: Outcome & { type: 'merged' }): string {
  const lines = duplicates
    .slice(0, maxDuplicates)
    .map(({ composite, olderId }) => `'${composite}' is already in ${olderId}, which is older`);
  const left = duplicates.length - lines.length;
  if (left > 0) lines.push(`and ${left} more`);
  const rest = rules === 0 ? 'nothing of this object is in force' : `the other ${limits(rules)} in force`;
  return `top-level rules that an older object of the namespace has for this domain are left out; ${rest}:\n${lines.join('\n')}`;
}

function olderIds(duplicates: readonly DuplicateRule[]): string {
  const ids = [...new Set(duplicates.map(({ olderId }) => olderId))];
  return ids.length > 1 ? `${ids[0]} and others` : `${ids[0]}`;
}

function acceptedText({ document, rules, warnings }: GoodVersion, alone: boolean): string {
  const text = `${rules} ${rules === 1 ? 'limit' : 'limits'} for domain '${document.domain}'`;
  // A limit that is replaced may be in another object of the domain, which the object alone knows nothing of.
  return warnings === '' || !alone ? text : `${text}; without effect:\n${warnings}`;
}

const limits = (count: number): string => (count === 1 ? 'limit is' : `${count} limits are`);
