import type { RuleDocument } from '@tollgate/rules/rule-document';
import type { DomainClaims } from './domain-claims.ts';
import type { CatalogObject } from './validation.ts';

type KeyParts = Pick<RuleDocument, 'domain' | 'limiterClass'>;

/** Key of a domain for the limiters of a class. A class contains no slash, and is not empty. */
export const toKey = ({ domain, limiterClass = '' }: KeyParts): string => `${limiterClass}/${domain}`;

export function parseKey(key: string): KeyParts {
  const slash = key.indexOf('/');
  return { domain: key.slice(slash + 1), limiterClass: slash === 0 ? undefined : key.slice(0, slash) };
}

export const isOfClass = (key: string): boolean => !key.startsWith('/');

/** The owner of a domain. Nothing is served for a reserved domain. */
export type DomainOwner =
  | { readonly type: 'owned'; readonly namespace: string }
  | { readonly type: 'reserved'; readonly namespace: string; readonly untilMs: number };

/** The owner of a domain of objects without a class, for objects of a class. */
export function adoptOwner(
  owner: DomainOwner | undefined,
  objects: readonly CatalogObject[],
): DomainOwner | undefined {
  const isPresent = objects.some(({ namespace }) => namespace === owner?.namespace);
  return owner !== undefined && isPresent ? { type: 'owned', namespace: owner.namespace } : owner;
}

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
  readonly #claims: Pick<DomainClaims, 'isAllowed'>;
  readonly #ownerships = new Map<string, Ownership>();
  /** End of each reservation, in the order of release, which is the order of these times. */
  readonly #reserved = new Map<string, number>();

  /** With a grace period of 0 the oldest object owns the domain, and nothing is remembered. */
  constructor(graceMs: number, claims: Pick<DomainClaims, 'isAllowed'>) {
    this.#graceMs = graceMs;
    this.#claims = claims;
  }

  /** Restores the owner from before a restart. */
  restore(domain: string, namespace: string, nowMs: number): void {
    if (this.#graceMs === 0 || this.#ownerships.has(domain)) return;
    this.#ownerships.set(domain, { namespace, sinceMs: Number.NEGATIVE_INFINITY, releasedMs: nowMs });
  }

  /** `namespaces` are those of the objects of the domain, the oldest object first. */
  update(domain: string, namespaces: readonly string[], nowMs: number): DomainOwner | undefined {
    const owner = this.#nextOwner(domain, namespaces, nowMs);
    if (this.#graceMs > 0) this.#remember(domain, owner);
    return this.#describe(owner);
  }

  /** The owner that `update` would return. Remembers nothing. */
  preview(domain: string, namespaces: readonly string[], nowMs: number): DomainOwner | undefined {
    return this.#describe(this.#nextOwner(domain, namespaces, nowMs));
  }

  forget(domain: string): void {
    this.#reserved.delete(domain);
    this.#ownerships.delete(domain);
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

  #describe(owner: Ownership | undefined): DomainOwner | undefined {
    if (owner === undefined) return undefined;
    const { namespace, releasedMs } = owner;
    return releasedMs === undefined
      ? { type: 'owned', namespace }
      : { type: 'reserved', namespace, untilMs: releasedMs + this.#graceMs };
  }

  #remember(domain: string, owner: Ownership | undefined): void {
    if (owner === undefined) this.#ownerships.delete(domain);
    else this.#ownerships.set(domain, owner);
    if (owner?.releasedMs === undefined) this.#reserved.delete(domain);
    else this.#reserve(domain, owner.releasedMs + this.#graceMs);
  }

  #nextOwner(domain: string, namespaces: readonly string[], nowMs: number): Ownership | undefined {
    const [oldest] = namespaces;
    const oldestOwns =
      oldest === undefined ? undefined : { namespace: oldest, sinceMs: nowMs, releasedMs: undefined };
    const before = this.#ownerships.get(domain);
    if (before === undefined || this.#isTolerated(before, domain, oldest)) return oldestOwns;
    const { namespace, sinceMs, releasedMs } = before;
    if (namespaces.includes(namespace)) {
      const stays = namespace === oldest || nowMs - sinceMs >= settleMs;
      return stays ? { namespace, sinceMs, releasedMs: undefined } : oldestOwns;
    }
    const sinceReleaseMs = nowMs - (releasedMs ?? nowMs);
    if (sinceReleaseMs >= this.#graceMs) return oldestOwns;
    return { namespace, sinceMs, releasedMs: releasedMs ?? nowMs };
  }

  /** A namespace whose domain it is takes it from one that is only tolerated, at once. */
  #isTolerated({ namespace }: Ownership, key: string, oldest: string | undefined): boolean {
    const { domain } = parseKey(key);
    const mayClaim = (candidate: string) => this.#claims.isAllowed(candidate, domain);
    return !mayClaim(namespace) && oldest !== undefined && mayClaim(oldest);
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
