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
