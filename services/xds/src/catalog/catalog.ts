import { isDeepStrictEqual } from 'node:util';
import type { Steps } from '@tollgate/kit/time';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import { type MergeResult, mergeDomain } from './merge.ts';
import { type CommonSnapshot, SnapshotBuilder } from './snapshot.ts';
import type { ConfigObject, SourceEvent } from './source.ts';
import {
  type CatalogObject,
  compareAge,
  type DomainClaim,
  isNewer,
  type Preview,
  toPreview,
  toValidationResult,
  type ValidationResult,
  validateAlone,
  validateObject,
} from './validation.ts';

/** The effect of a batch of events. */
export interface CatalogChange {
  readonly snapshot: CommonSnapshot;
  /** Results that differ from before. */
  readonly results: readonly ValidationResult[];
  /** Ids of deleted objects. */
  readonly deleted: readonly string[];
}

export type CatalogEvent =
  | SourceEvent
  /** The rules of a deleted object stay in force, or come into force again. */
  | { readonly type: 'restored'; readonly object: CatalogObject };

export interface CatalogOptions {
  /** How long a domain stays reserved after the last object of its owner was deleted. Default 0. */
  readonly graceMs?: number;
  /** Namespaces that may claim any domain, `*` for all. Default all. */
  readonly anyDomainNamespaces?: readonly string[];
}

/** All objects, their validation results, and the rules. Without I/O, clock and logger. */
export class Catalog {
  readonly #anyDomainNamespaces: ReadonlySet<string>;
  readonly #owners: DomainOwners;
  readonly #objects = new Map<string, CatalogObject>();
  /** Objects with a valid version, by class and domain. */
  readonly #members = new Map<string, Map<string, CatalogObject>>();
  /** Classes of the objects of a domain. */
  readonly #classesByDomain = new Map<string, Set<string>>();
  /** Owners of domains of objects without a class. */
  readonly #commonOwners = new Map<string, DomainOwner>();
  readonly #rulesByDomain = new Map<string, number>();
  readonly #results = new Map<string, ValidationResult>();
  readonly #builder = new SnapshotBuilder();
  #isFirstList: boolean = true;
  #rules = 0;
  /** To be evaluated again. */
  #dirtyDomains = new Set<string>();
  #dirtyIds = new Set<string>();

  constructor({ graceMs = 0, anyDomainNamespaces = ['*'] }: CatalogOptions = {}) {
    this.#anyDomainNamespaces = new Set(anyDomainNamespaces);
    this.#owners = new DomainOwners(graceMs, (namespace, domain) => this.#mayClaim(namespace, domain));
  }

  /** Results by id. */
  get results(): ReadonlyMap<string, ValidationResult> {
    return this.#results;
  }

  /** The newest valid version of an object. */
  documentOf(id: string): RuleDocument | undefined {
    return this.#objects.get(id)?.valid?.document;
  }

  /** Limits in force, of all domains. */
  get rules(): number {
    return this.#rules;
  }

  /** Ids of all objects. */
  get ids(): Iterable<string> {
    return this.#objects.keys();
  }

  /** Number of domains with a valid object; each class of limiters counts. */
  get domainCount(): number {
    return this.#members.size;
  }

  find(id: string): CatalogObject | undefined {
    return this.#objects.get(id);
  }

  /** Objects of a class and domain with a valid version. */
  countMembers(key: string): number {
    return this.#members.get(key)?.size ?? 0;
  }

  /** When the next reservation of a domain ends and `apply` is due; undefined without any. */
  nextExpiryMs(): number | undefined {
    return this.#owners.nextExpiryMs();
  }

  /**
   * Applies events in order and evaluates only what they affect. Results are published by the last
   * step, all at once. Runs must not overlap; after a run that threw, the same events may be
   * applied again.
   */
  *apply(events: readonly CatalogEvent[], nowMs: number): Steps<CatalogChange> {
    for (const event of events) yield* this.#applyEvent(event, nowMs);
    const results = yield* this.#evaluateDirty(nowMs);
    return { snapshot: this.#builder.build(), ...this.#publish(results) };
  }

  /**
   * The result of an object if it were created or changed now, as if `isDeleted` objects, whose
   * rules are still in force, were gone. Changes nothing.
   */
  *preview(
    { manifest, stored: _, ...identity }: ConfigObject,
    nowMs: number,
    isDeleted: (id: string) => boolean = () => false,
  ): Steps<Preview> {
    const validated = yield* validateAlone(manifest, identity);
    if (!validated.ok) return { problems: validated.problems, warnings: [] };
    const { domain, limiterClass } = validated.version.document;
    const claim = this.#findClaim(
      identity.namespace,
      domain,
      wasInForce(this.#inherited(identity), manifest),
    );
    const object = { ...identity, valid: validated.version, problems: undefined, claim };
    if (claim === 'refused') return toPreview(object, new Map([[object, refused]]), this.#results);
    const key = toKey({ domain, limiterClass });
    const others = this.#sortedMembers(key).filter(({ id }) => id !== object.id && !isDeleted(id));
    const members = selectClaims([...others, object].sort(compareAge));
    const commonKey = toKey({ domain });
    const common =
      limiterClass === undefined
        ? []
        : selectClaims(this.#sortedMembers(commonKey).filter(({ id }) => !isDeleted(id)));
    const all = [...common, ...members];
    const findOwner = (ownerKey: string, objects: readonly CatalogObject[]) =>
      this.#owners.preview(
        ownerKey,
        objects.map(({ namespace }) => namespace),
        nowMs,
      );
    const commonOwner = limiterClass === undefined ? undefined : findOwner(commonKey, common);
    const owner = adoptOwner(commonOwner, all) ?? findOwner(key, members);
    if (owner === undefined) return { problems: [], warnings: [] };
    return toPreview(object, mergeDomain(domain, all, owner).results, this.#results);
  }

  *#applyEvent(event: CatalogEvent, nowMs: number): Steps<void> {
    if (event.type === 'replaced') yield* this.#replaceAll(event.objects, nowMs);
    else if (event.type === 'changed') yield* this.#change(event.object);
    else if (event.type === 'restored') this.#restore(event.object);
    else if (this.#objects.has(event.id)) this.#put(event.id, undefined);
  }

  *#replaceAll(objects: readonly ConfigObject[], nowMs: number): Steps<void> {
    const present = new Set(objects.map(({ id }) => id));
    for (const id of [...this.#objects.keys()]) if (!present.has(id)) this.#put(id, undefined);
    for (const object of objects) yield* this.#change(object);
    if (this.#isFirstList) this.#restoreOwners(objects, nowMs);
    this.#isFirstList = false;
  }

  *#change(object: ConfigObject): Steps<void> {
    const known = this.#objects.get(object.id);
    if (known !== undefined && isSameVersion(known, object) && !isReplacedByStored(known, object)) return;
    const before = this.#inherited(object);
    const validated = yield* validateObject(object, before?.valid);
    const { document } = validated.valid ?? {};
    const claim = this.#findClaim(object.namespace, document?.domain, wasInForce(before, object.manifest));
    this.#put(object.id, { ...validated, claim });
    yield;
  }

  /**
   * Returns what an object inherits from. One that was deleted and created again does not inherit
   * the rules of its predecessor, unless its deletion is held back.
   */
  #inherited({ id, uid }: Pick<ConfigObject, 'id' | 'uid'>): CatalogObject | undefined {
    const known = this.#objects.get(id);
    return known?.uid === uid || known?.heldBack !== undefined ? known : undefined;
  }

  #restore(object: CatalogObject): void {
    const { namespace, valid, claim } = object;
    const next = this.#findClaim(namespace, valid?.document.domain, claim !== 'refused');
    this.#put(object.id, { ...object, claim: next });
  }

  /** An object without a valid version claims nothing. */
  #findClaim(namespace: string, domain: string | undefined, isTolerated: boolean): DomainClaim {
    if (domain !== undefined && this.#mayClaim(namespace, domain)) return 'allowed';
    return isTolerated ? 'tolerated' : 'refused';
  }

  #mayClaim(namespace: string, domain: string): boolean {
    const names = this.#anyDomainNamespaces;
    return (
      names.has('*') || names.has(namespace) || domain === namespace || domain.startsWith(`${namespace}/`)
    );
  }

  #put(id: string, object: CatalogObject | undefined): void {
    const before = this.#objects.get(id)?.valid?.document;
    if (before !== undefined) {
      this.#members.get(toKey(before))?.delete(id);
      this.#markDirty(toKey(before));
    }
    this.#dirtyIds.add(id);
    if (object === undefined) {
      this.#objects.delete(id);
      return;
    }
    this.#objects.set(id, object);
    if (object.valid === undefined) return;
    const { document } = object.valid;
    const key = toKey(document);
    const members = this.#members.get(key) ?? new Map<string, CatalogObject>();
    this.#members.set(key, members.set(id, object));
    if (document.limiterClass !== undefined) this.#addClass(document.domain, document.limiterClass);
    this.#markDirty(key);
  }

  #addClass(domain: string, limiterClass: string): void {
    const classes = this.#classesByDomain.get(domain);
    if (classes === undefined) this.#classesByDomain.set(domain, new Set([limiterClass]));
    else classes.add(limiterClass);
  }

  /** Limiters of a class get the rules of objects without a class, too. */
  #markDirty(key: string): void {
    this.#dirtyDomains.add(key);
    const { limiterClass, domain } = parseKey(key);
    if (limiterClass !== undefined) return;
    for (const other of this.#classesByDomain.get(domain) ?? [])
      this.#dirtyDomains.add(toKey({ domain, limiterClass: other }));
  }

  /** Statuses name the owners of domains in conflict, as they were before a restart. */
  #restoreOwners(objects: readonly ConfigObject[], nowMs: number): void {
    const owners = new Map<string, Set<string>>();
    for (const { id, manifest } of objects) {
      const document = this.#objects.get(id)?.valid?.document;
      const owner = readDomainOwner(manifest);
      if (document === undefined || owner === undefined) continue;
      const key = toKey(document);
      owners.set(key, (owners.get(key) ?? new Set()).add(owner));
    }
    for (const [key, namespaces] of owners) {
      const [namespace] = namespaces;
      // When statuses differ, one of them is outdated, and nothing says which.
      if (namespace !== undefined && namespaces.size === 1) this.#owners.restore(key, namespace, nowMs);
    }
  }

  *#evaluateDirty(nowMs: number): Steps<ValidationResult[]> {
    for (const key of this.#owners.expired(nowMs)) this.#markDirty(key);
    const results: ValidationResult[] = [];
    for (const id of this.#dirtyIds) {
      const object = this.#objects.get(id);
      if (object !== undefined && object.valid === undefined)
        results.push(toValidationResult(object, undefined, true));
    }
    // Objects without a class come first, because limiters of a class get their rules, too.
    for (const key of [...this.#dirtyDomains].sort((a, b) => Number(isOfClass(a)) - Number(isOfClass(b)))) {
      for (const result of this.#evaluateDomain(key, nowMs)) results.push(result);
      yield;
    }
    return results;
  }

  #evaluateDomain(key: string, nowMs: number): readonly ValidationResult[] {
    const { domain, limiterClass } = parseKey(key);
    const present = this.#sortedMembers(key);
    if (present.length === 0) this.#members.delete(key);
    const members = selectClaims(present);
    const results = present
      .filter(({ claim }) => claim === 'refused')
      .map((object) => toValidationResult(object, refused, true));
    const common = limiterClass === undefined ? [] : selectClaims(this.#sortedMembers(toKey({ domain })));
    const owner = this.#updateOwner(key, { members, common, nowMs });
    if (owner === undefined || (limiterClass !== undefined && members.length === 0)) {
      if (limiterClass !== undefined && present.length === 0) this.#forgetClass(domain, limiterClass);
      this.#setRules(key, 0);
      this.#builder.remove(domain, limiterClass);
      return results;
    }
    const isOnTrial = ({ valid }: CatalogObject) => valid?.isOnTrial === true;
    const all = [...common, ...members];
    const trials = all.filter(isOnTrial).length;
    const { document, rules, results: merged } = mergeDomain(domain, all, owner);
    const isServed = owner.type === 'owned' && members.some(({ namespace }) => namespace === owner.namespace);
    if (isServed) this.#builder.put(domain, document, limiterClass);
    else this.#builder.remove(domain, limiterClass);
    this.#setRules(key, limiterClass === undefined ? rules : countRules(members, merged));
    for (const object of members) {
      const merge = merged.get(object);
      const isAlone = isOnTrial(object) ? trials === 1 : all.length - trials === 1;
      if (merge !== undefined) results.push(toValidationResult(object, merge, isAlone));
    }
    return results;
  }

  #sortedMembers(key: string): readonly CatalogObject[] {
    return [...(this.#members.get(key)?.values() ?? [])].sort(compareAge);
  }

  /**
   * The owner of a domain. Objects of a class cannot take a domain that objects without a class
   * have, however old they are; otherwise each class has an owner of its own.
   */
  #updateOwner(
    key: string,
    {
      members,
      common,
      nowMs,
    }: {
      readonly members: readonly CatalogObject[];
      readonly common: readonly CatalogObject[];
      readonly nowMs: number;
    },
  ): DomainOwner | undefined {
    const { domain, limiterClass } = parseKey(key);
    const namespaces = members.map(({ namespace }) => namespace);
    if (limiterClass === undefined) {
      const owner = this.#owners.update(key, namespaces, nowMs);
      if (owner === undefined) this.#commonOwners.delete(domain);
      else this.#commonOwners.set(domain, owner);
      return owner;
    }
    const owner = adoptOwner(this.#commonOwners.get(domain), [...common, ...members]);
    if (owner === undefined) return this.#owners.update(key, namespaces, nowMs);
    this.#owners.forget(key);
    return owner;
  }

  #forgetClass(domain: string, limiterClass: string): void {
    const classes = this.#classesByDomain.get(domain);
    classes?.delete(limiterClass);
    if (classes?.size === 0) this.#classesByDomain.delete(domain);
  }

  #setRules(key: string, count: number): void {
    this.#rules += count - (this.#rulesByDomain.get(key) ?? 0);
    if (count === 0) this.#rulesByDomain.delete(key);
    else this.#rulesByDomain.set(key, count);
  }

  #publish(results: readonly ValidationResult[]): Pick<CatalogChange, 'results' | 'deleted'> {
    const deleted = [...this.#dirtyIds].filter((id) => !this.#objects.has(id) && this.#results.delete(id));
    const changed = results.filter((result) => !isDeepStrictEqual(this.#results.get(result.id), result));
    for (const result of changed) this.#results.set(result.id, result);
    this.#dirtyIds = new Set();
    this.#dirtyDomains = new Set();
    return { results: changed, deleted };
  }
}

type KeyParts = Pick<RuleDocument, 'domain' | 'limiterClass'>;

/** Key of a domain for the limiters of a class. A class contains no slash, and is not empty. */
export const toKey = ({ domain, limiterClass = '' }: KeyParts): string => `${limiterClass}/${domain}`;

function parseKey(key: string): KeyParts {
  const slash = key.indexOf('/');
  return { domain: key.slice(slash + 1), limiterClass: slash === 0 ? undefined : key.slice(0, slash) };
}

const isOfClass = (key: string): boolean => !key.startsWith('/');

/** Limits in force of these objects only. */
function countRules(
  objects: readonly CatalogObject[],
  results: ReadonlyMap<CatalogObject, MergeResult>,
): number {
  let rules = 0;
  for (const object of objects) {
    const merge = results.get(object);
    if (merge?.type === 'merged' && object.valid?.isOnTrial !== true) rules += merge.rules;
  }
  return rules;
}

const refused: MergeResult = { type: 'refused' };

/** Objects that count for their domain; a namespace that may claim it comes before others. */
function selectClaims(objects: readonly CatalogObject[]): readonly CatalogObject[] {
  const claims = objects.filter(({ claim }) => claim !== 'refused');
  const isAllowed = ({ claim }: CatalogObject) => claim === 'allowed';
  if (claims.every(isAllowed) || !claims.some(isAllowed)) return claims;
  return [...claims.filter(isAllowed), ...claims.filter((object) => !isAllowed(object))];
}

/** The owner of a domain of objects without a class, for objects of a class. */
function adoptOwner(
  owner: DomainOwner | undefined,
  objects: readonly CatalogObject[],
): DomainOwner | undefined {
  const isPresent = objects.some(({ namespace }) => namespace === owner?.namespace);
  return owner !== undefined && isPresent ? { type: 'owned', namespace: owner.namespace } : owner;
}

/** Whether the rules of an object were in force before, here or as its status says. */
const wasInForce = (before: CatalogObject | undefined, manifest: unknown): boolean =>
  before === undefined ? hasRulesInForce(manifest) : before.claim !== 'refused';

/**
 * The xDS server has written that rules of the object are in force, or on trial, or left out only
 * because of other objects.
 */
function hasRulesInForce(manifest: unknown): boolean {
  const status = getField(manifest, 'status');
  const rules = getField(status, 'rules');
  if (typeof rules === 'number' && rules > 0) return true;
  const conditions = getField(status, 'conditions');
  const accepted = Array.isArray(conditions)
    ? conditions.find((condition) => getField(condition, 'type') === 'Accepted')
    : undefined;
  const reason = getField(accepted, 'reason');
  return reason === 'DomainConflict' || reason === 'DuplicateKey';
}

/** Status updates and resyncs bring objects whose spec has not changed. */
function isSameVersion(known: CatalogObject, object: ConfigObject): boolean {
  return (
    known.heldBack === undefined &&
    known.uid === object.uid &&
    known.generation === object.generation &&
    known.createdMs === object.createdMs &&
    known.order === object.order
  );
}

/** Another replica has stored a newer valid version of an invalid object than this one has seen. */
function isReplacedByStored({ problems, valid }: CatalogObject, { stored }: ConfigObject): boolean {
  return problems !== undefined && stored !== undefined && isNewer(stored, valid);
}

/** Characters of a namespace. */
const maxNamespace = 63;

/** `status.domainOwner` of a manifest. */
function readDomainOwner(manifest: unknown): string | undefined {
  const owner = getField(getField(manifest, 'status'), 'domainOwner');
  return typeof owner === 'string' && owner !== '' && owner.length <= maxNamespace ? owner : undefined;
}

function getField(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

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
class DomainOwners {
  readonly #graceMs: number;
  readonly #mayClaim: (namespace: string, domain: string) => boolean;
  readonly #ownerships = new Map<string, Ownership>();
  /** End of each reservation, in the order of release, which is the order of these times. */
  readonly #reserved = new Map<string, number>();

  /** With a grace period of 0 the oldest object owns the domain, and nothing is remembered. */
  constructor(graceMs: number, mayClaim: (namespace: string, domain: string) => boolean) {
    this.#graceMs = graceMs;
    this.#mayClaim = mayClaim;
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
    return !this.#mayClaim(namespace, domain) && oldest !== undefined && this.#mayClaim(oldest, domain);
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
