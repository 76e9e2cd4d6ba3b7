import { isDeepStrictEqual } from 'node:util';
import type { Steps } from '@tollgate/kit/time';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import type { GuardedEvent } from './deletion-guard.ts';
import { DomainClaims, readDomainOwner, selectClaims, wasInForce } from './domain-claims.ts';
import { DomainMembers } from './domain-members.ts';
import { adoptOwner, type DomainOwner, DomainOwners, isOfClass, parseKey, toKey } from './domain-owners.ts';
import { type MergeResult, mergeDomain } from './merge.ts';
import { type LimitsPreview, toInvalidPreview, toPreview } from './preview.ts';
import { type CommonSnapshot, SnapshotBuilder } from './snapshot.ts';
import type { ConfigObject } from './source.ts';
import { isNewer } from './stored-version.ts';
import { type CatalogObject, compareAge, validateAlone, validateObject } from './validation.ts';
import { toValidationResult, type ValidationResult } from './validation-result.ts';

/** The effect of a batch of events. */
export interface CatalogChange {
  readonly snapshot: CommonSnapshot;
  /** Results that differ from before. */
  readonly results: readonly ValidationResult[];
  /** Ids of deleted objects. */
  readonly deleted: readonly string[];
}

export type CatalogEvent = GuardedEvent<CatalogObject>;

export interface CatalogOptions {
  /** How long a domain stays reserved after the last object of its owner was deleted. Default 0. */
  readonly graceMs?: number;
  /** Namespaces that may claim any domain, `*` for all. Default all. */
  readonly anyDomainNamespaces?: readonly string[];
}

/** All objects, their validation results, and the rules. Without I/O, clock and logger. */
export class Catalog {
  readonly #claims: DomainClaims;
  readonly #owners: DomainOwners;
  readonly #objects = new Map<string, CatalogObject>();
  /** Objects with a valid version, by class and domain. */
  readonly #members = new DomainMembers();
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
    this.#claims = new DomainClaims(anyDomainNamespaces);
    this.#owners = new DomainOwners(graceMs, this.#claims);
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

  /** Class and domain; undefined without a valid version, which lifts no limit. */
  keyOf({ valid }: CatalogObject): string | undefined {
    return valid && toKey(valid.document);
  }

  /** Objects of a class and domain with a valid version. */
  countMembers(key: string): number {
    return this.#members.count(key);
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
  ): Steps<LimitsPreview> {
    const validated = yield* validateAlone(manifest, identity);
    if (!validated.ok) return toInvalidPreview(validated.problems);
    const { domain, limiterClass } = validated.version.document;
    const claim = this.#claims.find(
      identity.namespace,
      domain,
      wasInForce(this.#inherited(identity), manifest),
    );
    const object = { ...identity, valid: validated.version, problems: undefined, claim };
    if (claim === 'refused') return toPreview(object, new Map([[object, refused]]), this.#results);
    const key = toKey({ domain, limiterClass });
    const others = this.#members.sorted(key).filter(({ id }) => id !== object.id && !isDeleted(id));
    const members = selectClaims([...others, object].sort(compareAge));
    const commonKey = toKey({ domain });
    const common =
      limiterClass === undefined
        ? []
        : selectClaims(this.#members.sorted(commonKey).filter(({ id }) => !isDeleted(id)));
    const all = [...common, ...members];
    const findOwner = (ownerKey: string, objects: readonly CatalogObject[]) =>
      this.#owners.preview(
        ownerKey,
        objects.map(({ namespace }) => namespace),
        nowMs,
      );
    const commonOwner = limiterClass === undefined ? undefined : findOwner(commonKey, common);
    const owner = adoptOwner(commonOwner, all) ?? findOwner(key, members);
    const merged = owner === undefined ? new Map() : mergeDomain(domain, all, owner).results;
    return toPreview(object, merged, this.#results);
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
    const claim = this.#claims.find(object.namespace, document?.domain, wasInForce(before, object.manifest));
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
    const next = this.#claims.find(namespace, valid?.document.domain, claim !== 'refused');
    this.#put(object.id, { ...object, claim: next });
  }

  #put(id: string, object: CatalogObject | undefined): void {
    const before = this.#objects.get(id)?.valid?.document;
    if (before !== undefined) {
      this.#members.remove(toKey(before), id);
      this.#markDirty(toKey(before));
    }
    this.#dirtyIds.add(id);
    if (object === undefined) {
      this.#objects.delete(id);
      return;
    }
    this.#objects.set(id, object);
    if (object.valid === undefined) return;
    const key = toKey(object.valid.document);
    this.#members.add(key, object);
    this.#markDirty(key);
  }

  /** Limiters of a class get the rules of objects without a class, too. */
  #markDirty(key: string): void {
    this.#dirtyDomains.add(key);
    const { limiterClass, domain } = parseKey(key);
    if (limiterClass !== undefined) return;
    for (const other of this.#members.classesOf(domain))
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
    const present = this.#members.sorted(key);
    if (present.length === 0) this.#members.forget(key);
    const members = selectClaims(present);
    const results = present
      .filter(({ claim }) => claim === 'refused')
      .map((object) => toValidationResult(object, refused, true));
    const common = limiterClass === undefined ? [] : selectClaims(this.#members.sorted(toKey({ domain })));
    const owner = this.#updateOwner(key, { members, common, nowMs });
    if (owner === undefined || (limiterClass !== undefined && members.length === 0)) {
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
