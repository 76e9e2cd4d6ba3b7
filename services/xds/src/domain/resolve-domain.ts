import type { DescriptorSpec, RuleDocument } from '@tollgate/rules/rule-document';
import { type CatalogEntry, compareAge } from './catalog-entry.ts';
import type { DomainOwner } from './domain-owners.ts';

/** A top-level rule that an older object has already. */
export interface DuplicateRule {
  /** `key` or `key_value`, as limiters find it. */
  readonly composite: string;
  readonly older: CatalogEntry;
}

/** What became of one object that wants a domain. */
export type Outcome =
  /** Merged, but for the duplicates. */
  | {
      readonly type: 'merged';
      /** Limits of it in force. */
      readonly rules: number;
      readonly duplicates: readonly DuplicateRule[];
    }
  /** The domain belongs to the namespace of another object. */
  | { readonly type: 'conflict'; readonly winner: CatalogEntry }
  /** The domain is kept for a namespace that has no object any more. */
  | { readonly type: 'kept'; readonly namespace: string; readonly untilMs: number };

/** Who has a domain, and its rules. */
export interface ResolvedDomain {
  readonly document: RuleDocument;
  readonly rules: number;
  readonly outcomes: ReadonlyMap<CatalogEntry, Outcome>;
}

/** Orders the objects of a domain by age, the oldest first. */
export const byAge = (entries: Iterable<CatalogEntry>): readonly CatalogEntry[] =>
  [...entries].sort(compareAge);

/**
 * Settles what several objects of one domain, by age, come to. A function of these objects and of the owner alone, in whatever order
 * they came.
 *
 * The owner has the domain; objects of other namespaces are in conflict until it gives the domain up. The
 * objects of that namespace are merged, older ones first, which matters to wildcards. A top-level rule that an older
 * object has is left out of the younger one, and nothing else: to leave out the whole object would lift limits that
 * nobody meant to lift, and to keep its last version instead would depend on what this replica happens to have seen.
 */
export function resolveDomain(
  domain: string,
  entries: readonly CatalogEntry[],
  owner: DomainOwner,
): ResolvedDomain {
  const winner = entries.find(({ namespace }) => owner.type === 'owned' && namespace === owner.namespace);
  const merge: Merge = { taken: new Map(), descriptors: [] };
  const outcomes = new Map<CatalogEntry, Outcome>();
  let rules = 0;
  for (const entry of entries) {
    if (owner.type === 'kept') {
      outcomes.set(entry, owner);
      continue;
    }
    if (winner === undefined || entry.namespace !== winner.namespace) {
      outcomes.set(entry, { type: 'conflict', winner: winner ?? entry });
      continue;
    }
    const outcome = mergeEntry(merge, entry);
    rules += outcome.rules;
    outcomes.set(entry, outcome);
  }
  const document: RuleDocument = { source: domain, domain, descriptors: merge.descriptors };
  return { document, rules, outcomes };
}

interface Merge {
  /** Who has a top-level rule, by composite. */
  readonly taken: Map<string, CatalogEntry>;
  readonly descriptors: DescriptorSpec[];
}

function mergeEntry({ taken, descriptors }: Merge, entry: CatalogEntry): Outcome & { type: 'merged' } {
  const duplicates: DuplicateRule[] = [];
  let rules = entry.good?.rules ?? 0;
  for (const spec of entry.good?.document.descriptors ?? []) {
    // Limiters know a level by this text: `a_b` without a value is the same to them as `a` with the value `b`.
    const composite = spec.value === undefined || spec.value === '' ? spec.key : `${spec.key}_${spec.value}`;
    const older = taken.get(composite);
    if (older === undefined) {
      taken.set(composite, entry);
      descriptors.push(spec);
    } else {
      duplicates.push({ composite, older });
      rules -= countLimits(spec);
    }
  }
  return { type: 'merged', rules, duplicates };
}

function countLimits({ rateLimit, descriptors }: DescriptorSpec): number {
  let limits = rateLimit === undefined ? 0 : 1;
  for (const child of descriptors ?? []) limits += countLimits(child);
  return limits;
}
