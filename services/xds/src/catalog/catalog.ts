import type { Steps } from '@tollgate/kit/steps';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import type { ConfigObject, SourceEvent } from '../sources/source.ts';
import { judge, sameVerdict, type Verdict } from './accepted.ts';
import { byAge, DomainOwners, resolveDomain } from './domains.ts';
import type { Snapshot } from './snapshot.ts';
import { createSnapshotBuilder } from './snapshot.ts';
import type { CatalogEntry } from './validate.ts';
import { acceptObject } from './validate.ts';

/** What the catalog leaves to others: it is pure. */
export interface CatalogDeps {
  /** The encoded `google.protobuf.Any` of a domain's rules: equal bytes for equal rules. */
  readonly encode: (document: RuleDocument) => Uint8Array;
  /** A hash in hexadecimal that nobody finds two texts for. */
  readonly hash: (content: Uint8Array | string) => string;
  /** How long a domain is kept for a namespace whose last object for it is gone. Default 0. */
  readonly graceMs?: number;
}

/** What events have changed. */
export interface CatalogChange {
  readonly snapshot: Snapshot;
  /** Objects of which there is something new to say. */
  readonly verdicts: readonly Verdict[];
  /** Ids of objects that are gone. */
  readonly forgotten: readonly string[];
}

/** All objects, what is thought of each, and the rules they come to. */
export interface Catalog {
  /**
   * Takes events in, in order. Only what they touch is computed anew. In steps: the catalog shows what it showed before
   * until the last one is done. One run at a time. After one that failed, the same events may be taken in once more.
   * `nowMs` is the Unix time: domains whose grace period is over are free.
   */
  apply(events: readonly SourceEvent[], nowMs: number): Steps<CatalogChange>;
  /** When a domain is free that is kept now, in Unix milliseconds: `apply` has to be called then. Undefined when none is. */
  nextExpiryMs(): number | undefined;
  /** Of every object, by id. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  /** Limits in force of all domains. */
  readonly rules: number;
}

/** Makes an empty catalog. */
export function createCatalog({ encode, hash, graceMs = 0 }: CatalogDeps): Catalog {
  const owners = new DomainOwners(graceMs);
  let isFirstList = true;
  const entries = new Map<string, CatalogEntry>();
  /** Those with a good version, by the domain they want. */
  const members = new Map<string, Map<string, CatalogEntry>>();
  const rulesOf = new Map<string, number>();
  const verdicts = new Map<string, Verdict>();
  const builder = createSnapshotBuilder(hash);
  let rules = 0;
  /** Domains and objects to be looked at again. */
  let dirtyDomains = new Set<string>();
  let dirtyIds = new Set<string>();

  function put(id: string, entry: CatalogEntry | undefined): void {
    const before = entries.get(id)?.good?.document.domain;
    if (before !== undefined) {
      members.get(before)?.delete(id);
      dirtyDomains.add(before);
    }
    dirtyIds.add(id);
    if (entry === undefined) {
      entries.delete(id);
      return;
    }
    entries.set(id, entry);
    if (entry.good !== undefined) join(entry.good.document.domain, entry);
  }

  function join(domain: string, entry: CatalogEntry): void {
    const joined = members.get(domain) ?? new Map<string, CatalogEntry>();
    members.set(domain, joined.set(entry.id, entry));
    dirtyDomains.add(domain);
  }

  function* change(object: ConfigObject): Steps<void> {
    const known = entries.get(object.id);
    if (known !== undefined && isSameVersion(known, object)) return;
    // Another object of the same name starts anew: its predecessor's rules went with it.
    const last = known?.uid === object.uid ? known.good : undefined;
    put(object.id, yield* acceptObject(object, last));
    yield;
  }

  /** What statuses say of domains that belonged to others when they were written, perhaps before a restart. */
  function restoreOwners(objects: readonly ConfigObject[], nowMs: number): void {
    const stated = new Map<string, Set<string>>();
    for (const { id, manifest } of objects) {
      const domain = entries.get(id)?.good?.document.domain;
      const owner = statedOwner(manifest);
      if (domain === undefined || owner === undefined) continue;
      stated.set(domain, (stated.get(domain) ?? new Set()).add(owner));
    }
    for (const [domain, namespaces] of stated) {
      const [namespace] = namespaces;
      // Where statuses differ, one of them is old, and there is no telling which.
      if (namespace !== undefined && namespaces.size === 1) owners.restore(domain, namespace, nowMs);
    }
  }

  function* replace(objects: readonly ConfigObject[], nowMs: number): Steps<void> {
    const present = new Set(objects.map(({ id }) => id));
    for (const id of [...entries.keys()]) if (!present.has(id)) put(id, undefined);
    for (const object of objects) yield* change(object);
    if (isFirstList) restoreOwners(objects, nowMs);
    isFirstList = false;
  }

  function* take(event: SourceEvent, nowMs: number): Steps<void> {
    if (event.type === 'replaced') yield* replace(event.objects, nowMs);
    else if (event.type === 'changed') yield* change(event.object);
    else if (entries.has(event.id)) put(event.id, undefined);
  }

  /** Computes one domain anew and answers what is to be said of its objects. */
  function settle(domain: string, nowMs: number): Verdict[] {
    const joined = members.get(domain) ?? new Map<string, CatalogEntry>();
    if (joined.size === 0) members.delete(domain);
    const wanting = byAge(joined.values());
    const owner = owners.settle(
      domain,
      wanting.map(({ namespace }) => namespace),
      nowMs,
    );
    if (owner === undefined) {
      countRules(domain, 0);
      builder.remove(domain);
      return [];
    }
    const resolved = resolveDomain(domain, wanting, owner);
    if (owner.type === 'owned') builder.put(domain, encode(resolved.document));
    else builder.remove(domain);
    countRules(domain, resolved.rules);
    return [...resolved.outcomes].map(([entry, outcome]) => judge(entry, outcome, joined.size === 1));
  }

  function countRules(domain: string, count: number): void {
    rules += count - (rulesOf.get(domain) ?? 0);
    if (count === 0) rulesOf.delete(domain);
    else rulesOf.set(domain, count);
  }

  function* judgeDirty(nowMs: number): Steps<Verdict[]> {
    for (const domain of owners.expired(nowMs)) dirtyDomains.add(domain);
    const judged: Verdict[] = [];
    for (const id of dirtyIds) {
      const entry = entries.get(id);
      if (entry !== undefined && entry.good === undefined) judged.push(judge(entry, undefined, true));
    }
    for (const domain of dirtyDomains) {
      for (const verdict of settle(domain, nowMs)) judged.push(verdict);
      yield;
    }
    return judged;
  }

  /** Shows what was found, all at once. */
  function publish(judged: readonly Verdict[]): Pick<CatalogChange, 'verdicts' | 'forgotten'> {
    const forgotten = [...dirtyIds].filter((id) => !entries.has(id) && verdicts.delete(id));
    const news = judged.filter((verdict) => {
      const before = verdicts.get(verdict.id);
      return before === undefined || !sameVerdict(before, verdict);
    });
    for (const verdict of news) verdicts.set(verdict.id, verdict);
    dirtyIds = new Set();
    dirtyDomains = new Set();
    return { verdicts: news, forgotten };
  }

  return {
    verdicts,
    get rules() {
      return rules;
    },
    nextExpiryMs: () => owners.nextExpiryMs(),
    *apply(events, nowMs) {
      for (const event of events) yield* take(event, nowMs);
      const judged = yield* judgeDirty(nowMs);
      return { snapshot: builder.build(), ...publish(judged) };
    },
  };
}

/** A status that was written, or a list taken again, brings objects that nobody has changed. */
function isSameVersion(known: CatalogEntry, object: ConfigObject): boolean {
  return (
    known.uid === object.uid &&
    known.generation === object.generation &&
    known.createdMs === object.createdMs &&
    known.order === object.order
  );
}

/** Longest name of a namespace. */
const maxNamespace = 63;

/** The namespace that the status of an object names as the owner of its domain. */
function statedOwner(manifest: unknown): string | undefined {
  const owner = fieldOf(fieldOf(manifest, 'status'), 'domainOwner');
  return typeof owner === 'string' && owner !== '' && owner.length <= maxNamespace ? owner : undefined;
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
