import type { DescriptorSpec, RuleDocument } from '@tollgate/rules/rule-document';
import { type CatalogEntry, compareAge } from './validate.ts';

/** The owner of a domain. A domain is kept, and not served, while its owner has no object for a grace period. */
export type DomainOwner =
  | { readonly type: 'owned'; readonly namespace: string }
  | { readonly type: 'kept'; readonly namespace: string; readonly untilMs: number };

interface Ownership {
  readonly namespace: string;
  readonly sinceMs: number;
  /** When the last object of the namespace went; undefined while there is one. */
  readonly releasedMs: number | undefined;
}

/**
 * For so long after a namespace got a domain, an older object of another one still takes it. Objects of one second may come
 * in either order, and replicas must agree on the older of them.
 */
const settleMs = 10_000;

/** Domains that are kept, of a hundred bytes each: a client could create and delete objects of ever new domains. */
const maxKept = 100_000;

/**
 * Remembers which namespace has a domain, so that a domain does not change hands while its owner replaces its objects: the
 * owner keeps it for a grace period after its last object went, and gets it back with a younger object.
 */
export class DomainOwners {
  readonly #graceMs: number;
  readonly #ownerships = new Map<string, Ownership>();
  /** When domains that are kept are free: in the order in which they were released, which is the order of these times. */
  readonly #kept = new Map<string, number>();

  /** With a grace period of 0, the oldest object has the domain, and nothing is remembered. */
  constructor(graceMs: number) {
    this.#graceMs = graceMs;
  }

  /** Takes over what was known before a restart: the domain was of this namespace. */
  restore(domain: string, namespace: string, nowMs: number): void {
    if (this.#graceMs === 0 || this.#ownerships.has(domain)) return;
    this.#ownerships.set(domain, { namespace, sinceMs: Number.NEGATIVE_INFINITY, releasedMs: nowMs });
  }

  /** Settles who has a domain that is wanted by objects of these namespaces, the oldest object first. */
  settle(domain: string, namespaces: readonly string[], nowMs: number): DomainOwner | undefined {
    const [oldest] = namespaces;
    if (this.#graceMs === 0) return oldest === undefined ? undefined : { type: 'owned', namespace: oldest };
    const before = this.#ownerships.get(domain);
    const owner = this.#next(before, namespaces, nowMs);
    if (owner === undefined) {
      this.#kept.delete(domain);
      this.#ownerships.delete(domain);
      return undefined;
    }
    this.#ownerships.set(domain, owner);
    const { namespace, releasedMs } = owner;
    if (releasedMs === undefined) {
      this.#kept.delete(domain);
      return { type: 'owned', namespace };
    }
    const untilMs = releasedMs + this.#graceMs;
    this.#keep(domain, untilMs);
    return { type: 'kept', namespace, untilMs };
  }

  /** Domains that are free by now. */
  expired(nowMs: number): readonly string[] {
    const free: string[] = [];
    for (const [domain, untilMs] of this.#kept) {
      if (untilMs > nowMs) break;
      free.push(domain);
    }
    return free;
  }

  /** When the next domain is free; undefined while none is kept. */
  nextExpiryMs(): number | undefined {
    const [first] = this.#kept.values();
    return first;
  }

  #next(before: Ownership | undefined, namespaces: readonly string[], nowMs: number): Ownership | undefined {
    const [oldest] = namespaces;
    const oldestOwns =
      oldest === undefined ? undefined : { namespace: oldest, sinceMs: nowMs, releasedMs: undefined };
    if (before === undefined) return oldestOwns;
    const { namespace, sinceMs, releasedMs } = before;
    if (namespaces.includes(namespace)) {
      const stays = namespace === oldest || nowMs - sinceMs >= settleMs;
      return stays ? { namespace, sinceMs, releasedMs: undefined } : oldestOwns;
    }
    const sinceReleaseMs = nowMs - (releasedMs ?? nowMs);
    if (sinceReleaseMs >= this.#graceMs) return oldestOwns;
    return { namespace, sinceMs, releasedMs: releasedMs ?? nowMs };
  }

  #keep(domain: string, untilMs: number): void {
    // One that is there keeps its place.
    this.#kept.set(domain, untilMs);
    if (this.#kept.size <= maxKept) return;
    const [oldest] = this.#kept.keys();
    if (oldest === undefined) return;
    this.#kept.delete(oldest);
    this.#ownerships.delete(oldest);
  }
}

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
