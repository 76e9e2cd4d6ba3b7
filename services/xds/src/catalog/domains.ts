import type { DescriptorSpec, RuleDocument } from '@tollgate/rules/rule-document';
import type { CatalogObject } from './validate.ts';

/** The owner of a domain. Nothing is served for a reserved domain. */
export type DomainOwner =
  | { readonly type: 'owned'; readonly namespace: string }
  | { readonly type: 'reserved'; readonly namespace: string; readonly untilMs: number };

interface Ownership {
  readonly namespace: string;
  readonly sinceMs: number;
  /** When the last object of the namespace was deleted; undefined while there is one. */
  readonly releasedMs: number | undefined;
}

/**
 * For this time after a namespace got a domain, an older object of another namespace still takes
 * it: objects created in the same second may arrive in either order, and all replicas must agree on
 * the oldest.
 */
const settleMs = 10_000;

/** Reserved domains, of about 100 bytes each: a client may create and delete many. */
const maxReserved = 100_000;

/**
 * Remembers which namespace owns a domain, so that it does not change hands while its owner
 * replaces objects: the owner keeps it for a grace period after its last object was deleted, and
 * may reclaim it with a younger object.
 */
export class DomainOwners {
  readonly #graceMs: number;
  readonly #ownerships = new Map<string, Ownership>();
  /** End of each reservation, in the order of release, which is the order of these times. */
  readonly #reserved = new Map<string, number>();

  /** With a grace period of 0 the oldest object owns the domain, and nothing is remembered. */
  constructor(graceMs: number) {
    this.#graceMs = graceMs;
  }

  /** Restores the owner from before a restart. */
  restore(domain: string, namespace: string, nowMs: number): void {
    if (this.#graceMs === 0 || this.#ownerships.has(domain)) return;
    this.#ownerships.set(domain, { namespace, sinceMs: Number.NEGATIVE_INFINITY, releasedMs: nowMs });
  }

  /** `namespaces` are those of the objects of the domain, the oldest object first. */
  update(domain: string, namespaces: readonly string[], nowMs: number): DomainOwner | undefined {
    const [oldest] = namespaces;
    if (this.#graceMs === 0) return oldest === undefined ? undefined : { type: 'owned', namespace: oldest };
    const before = this.#ownerships.get(domain);
    const owner = this.#nextOwner(before, namespaces, nowMs);
    if (owner === undefined) {
      this.#reserved.delete(domain);
      this.#ownerships.delete(domain);
      return undefined;
    }
    this.#ownerships.set(domain, owner);
    const { namespace, releasedMs } = owner;
    if (releasedMs === undefined) {
      this.#reserved.delete(domain);
      return { type: 'owned', namespace };
    }
    const untilMs = releasedMs + this.#graceMs;
    this.#reserve(domain, untilMs);
    return { type: 'reserved', namespace, untilMs };
  }

  /** Domains whose reservation has ended. */
  expired(nowMs: number): readonly string[] {
    const domains: string[] = [];
    for (const [domain, untilMs] of this.#reserved) {
      if (untilMs > nowMs) break;
      domains.push(domain);
    }
    return domains;
  }

  /** Undefined while no domain is reserved. */
  nextExpiryMs(): number | undefined {
    const [first] = this.#reserved.values();
    return first;
  }

  #nextOwner(
    before: Ownership | undefined,
    namespaces: readonly string[],
    nowMs: number,
  ): Ownership | undefined {
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

  #reserve(domain: string, untilMs: number): void {
    // A domain that is already reserved keeps its position in the map.
    this.#reserved.set(domain, untilMs);
    if (this.#reserved.size <= maxReserved) return;
    const [oldest] = this.#reserved.keys();
    if (oldest === undefined) return;
    this.#reserved.delete(oldest);
    this.#ownerships.delete(oldest);
  }
}

/** A top-level rule that an older object has already. */
export interface DuplicateRule {
  /** `key` or `key_value`, as limiters identify it. */
  readonly composite: string;
  readonly older: CatalogObject;
}

/** What of an object is part of its domain. */
export type MergeResult =
  | {
      readonly type: 'merged';
      /** Limits in force, without duplicates. */
      readonly rules: number;
      readonly duplicates: readonly DuplicateRule[];
    }
  /** The domain belongs to the namespace of another object. */
  | { readonly type: 'conflict'; readonly winner: CatalogObject }
  /** The domain is reserved for a namespace without objects. */
  | { readonly type: 'reserved'; readonly namespace: string; readonly untilMs: number };

/** The rules of a domain, and what became of each of its objects. */
export interface MergedDomain {
  readonly document: RuleDocument;
  readonly rules: number;
  readonly results: ReadonlyMap<CatalogObject, MergeResult>;
}

/**
 * Merges the objects of a domain, which are sorted by age. The result depends only on them and the
 * owner.
 *
 * Objects of other namespaces are in conflict until the owner gives up the domain. The objects of
 * the owner are merged, older ones first, which matters to wildcards. Of a younger object only
 * those top-level rules are left out that an older one has: leaving out the whole object would lift
 * other limits, and keeping its previous version would depend on what this replica has seen.
 */
export function mergeDomain(
  domain: string,
  objects: readonly CatalogObject[],
  owner: DomainOwner,
): MergedDomain {
  const winner = objects.find(({ namespace }) => owner.type === 'owned' && namespace === owner.namespace);
  const merge: Merge = { taken: new Map(), descriptors: [] };
  const results = new Map<CatalogObject, MergeResult>();
  let rules = 0;
  for (const object of objects) {
    if (owner.type === 'reserved') {
      results.set(object, owner);
      continue;
    }
    if (winner === undefined || object.namespace !== winner.namespace) {
      results.set(object, { type: 'conflict', winner: winner ?? object });
      continue;
    }
    const result = mergeObject(merge, object);
    rules += result.rules;
    results.set(object, result);
  }
  const document: RuleDocument = { source: domain, domain, descriptors: merge.descriptors };
  return { document, rules, results };
}

interface Merge {
  /** The object that has a top-level rule, by composite. */
  readonly taken: Map<string, CatalogObject>;
  readonly descriptors: DescriptorSpec[];
}

function mergeObject({ taken, descriptors }: Merge, object: CatalogObject): MergeResult & { type: 'merged' } {
  const duplicates: DuplicateRule[] = [];
  let rules = object.valid?.rules ?? 0;
  for (const spec of object.valid?.document.descriptors ?? []) {
    // Limiters identify a level by this text: `a_b` without a value equals `a` with the value `b`.
    const composite = spec.value === undefined || spec.value === '' ? spec.key : `${spec.key}_${spec.value}`;
    const older = taken.get(composite);
    if (older === undefined) {
      taken.set(composite, object);
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
