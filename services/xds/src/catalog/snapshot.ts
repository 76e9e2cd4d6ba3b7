import { createHash } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import type { Json, JsonObject } from '@tollgate/kit/json';
import { compareText } from '@tollgate/kit/text';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import type { DescriptorSpec, RuleDocument } from '@tollgate/rules/rule-document';
import { toMessage } from '@tollgate/rules/rule-message';

/** Type URL of the resources. */
export const rateLimitConfigType = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

/** An ADS resource: the rules of one domain. */
export interface SnapshotResource {
  /** The domain. */
  readonly name: string;
  /** Hash of the content, in hexadecimal: equal rules have equal versions on all replicas. */
  readonly version: string;
  /** The encoded `google.protobuf.Any` with the `ratelimit.config.ratelimit.v3.RateLimitConfig`. */
  readonly any: Uint8Array;
}

type Resources = ReadonlyMap<string, SnapshotResource>;

/** All resources for limiters of one class at one moment. Immutable. */
export interface Snapshot {
  /** Hash of the names and versions of all resources. */
  readonly version: string;
  /** Resources by name, sorted by code units. */
  readonly resources: Resources;
}

/** Resources for limiters without a class, and what limiters of each class have instead. */
export interface CommonSnapshot extends Snapshot {
  /** Resources by class and name. */
  readonly classes: ReadonlyMap<string, Resources>;
}

/** Resources, of which a snapshot may have the map: changes go to a copy then. */
class ResourceMap {
  resources: Map<string, SnapshotResource> = new Map();
  #isShared: boolean = false;
  #isSorted: boolean = true;

  /** False when nothing changes. */
  put(resource: SnapshotResource): boolean {
    const known = this.resources.get(resource.name);
    if (known?.version === resource.version) return false;
    this.#copyIfShared();
    if (known === undefined) this.#isSorted = false;
    this.resources.set(resource.name, resource);
    return true;
  }

  /** False when nothing changes. */
  remove(name: string): boolean {
    if (!this.resources.has(name)) return false;
    this.#copyIfShared();
    this.resources.delete(name);
    return true;
  }

  /** The sorted resources; this map does not change any more. */
  share(): Resources {
    if (!this.#isSorted) this.resources = sortByName(this.resources);
    this.#isSorted = true;
    this.#isShared = true;
    return this.resources;
  }

  #copyIfShared(): void {
    if (this.#isShared) this.resources = new Map(this.resources);
    this.#isShared = false;
  }
}

const sortByName = (resources: Resources): Map<string, SnapshotResource> =>
  new Map([...resources].sort(([a], [b]) => compareText(a, b)));

/** Builds snapshots one after the other, sharing what has not changed. */
export class SnapshotBuilder {
  readonly #common = new ResourceMap();
  readonly #classes = new Map<string, ResourceMap>();
  #last: CommonSnapshot | undefined;
  #isChanged: boolean = true;

  put(domain: string, document: RuleDocument, limiterClass?: string): void {
    this.putEncoded(domain, encodeRules(document), limiterClass);
  }

  /** @param any an encoded `google.protobuf.Any` */
  putEncoded(name: string, any: Uint8Array, limiterClass?: string): void {
    const resource = { name, version: hashContent(any), any };
    if (this.#resourcesOf(limiterClass).put(resource)) this.#isChanged = true;
  }

  remove(domain: string, limiterClass?: string): void {
    const resources = this.#resourcesOf(limiterClass);
    if (resources.remove(domain)) this.#isChanged = true;
    if (limiterClass !== undefined && resources.resources.size === 0) this.#classes.delete(limiterClass);
  }

  /** Returns the previous object when nothing has changed. */
  build(): CommonSnapshot {
    if (this.#last !== undefined && !this.#isChanged) return this.#last;
    this.#isChanged = false;
    const resources = this.#common.share();
    const version = resources === this.#last?.resources ? this.#last.version : hashVersions(resources);
    const classes = new Map([...this.#classes].map(([name, own]) => [name, own.share()]));
    this.#last = { version, resources, classes };
    return this.#last;
  }

  #resourcesOf(limiterClass: string | undefined): ResourceMap {
    if (limiterClass === undefined) return this.#common;
    const known = this.#classes.get(limiterClass);
    if (known !== undefined) return known;
    const created = new ResourceMap();
    this.#classes.set(limiterClass, created);
    return created;
  }
}

/** Adds resources to those for all limiters; of equal names, the added one counts. */
export function addResources(snapshot: CommonSnapshot, { resources: added }: Snapshot): CommonSnapshot {
  if (added.size === 0) return snapshot;
  const resources = sortByName(new Map([...snapshot.resources, ...added]));
  return { version: hashVersions(resources), resources, classes: snapshot.classes };
}

/** The snapshot in force. */
export class SnapshotStore {
  readonly #nowMs: () => number;
  readonly #listeners = new Set<(snapshot: CommonSnapshot) => void>();
  readonly #sinceMs = new WeakMap<Snapshot, number>();
  /** Snapshots for limiters of a class, once one has asked for it. */
  readonly #ofClass = new Map<string, { readonly common: CommonSnapshot; readonly snapshot: Snapshot }>();
  #current: CommonSnapshot | undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Undefined until the source has synced: nothing is served before. */
  current(): CommonSnapshot | undefined {
    return this.#current;
  }

  /** The snapshot for limiters of a class: what they have instead, and everything else. */
  currentOf(limiterClass: string | undefined): Snapshot | undefined {
    const common = this.#current;
    const own = common?.classes.get(limiterClass ?? '');
    if (common === undefined || own === undefined) return common;
    const known = this.#ofClass.get(limiterClass ?? '');
    if (known?.common === common) return known.snapshot;
    const resources = sortByName(new Map([...common.resources, ...own]));
    const version = hashVersions(resources);
    // An edit of another class changes nothing.
    const snapshot = known?.snapshot.version === version ? known.snapshot : { version, resources };
    if (!this.#sinceMs.has(snapshot)) this.#sinceMs.set(snapshot, this.#sinceMs.get(common) ?? 0);
    this.#ofClass.set(limiterClass ?? '', { common, snapshot });
    return snapshot;
  }

  /** A no-op for a snapshot of the same content. */
  set(snapshot: CommonSnapshot): void {
    if (isSameSnapshot(snapshot, this.#current)) return;
    const isSameVersion = snapshot.version === this.#current?.version;
    const sinceMs = this.#current && isSameVersion ? this.#sinceMs.get(this.#current) : undefined;
    for (const name of this.#ofClass.keys()) if (!snapshot.classes.has(name)) this.#ofClass.delete(name);
    this.#current = snapshot;
    this.#sinceMs.set(snapshot, sinceMs ?? this.#nowMs());
    for (const listener of [...this.#listeners]) listener(snapshot);
  }

  /** When a snapshot came into force; undefined for one that never did. */
  sinceMs(snapshot: Snapshot): number | undefined {
    return this.#sinceMs.get(snapshot);
  }

  /** Returns the function that unsubscribes. */
  onChange(listener: (snapshot: CommonSnapshot) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** Whether limiters of all classes get the same. */
export function isSameSnapshot(one: CommonSnapshot, other: CommonSnapshot | undefined): boolean {
  if (one === other) return true;
  if (one.version !== other?.version || one.classes.size !== other.classes.size) return false;
  return [...one.classes].every(([name, resources]) => {
    const others = other.classes.get(name);
    return (
      others?.size === resources.size &&
      [...resources.values()].every((resource) => others.get(resource.name)?.version === resource.version)
    );
  });
}

/** The encoded `google.protobuf.Any` of a domain's rules: equal bytes for equal rules. */
export function encodeRules({ descriptors, trial, ...document }: RuleDocument): Uint8Array {
  const message = toMessage({
    ...document,
    descriptors: descriptors.map(canonicalize),
    trial: trial && { ...trial, descriptors: trial.descriptors.map(canonicalize) },
  });
  const value = toBinary(RateLimitConfigSchema, message);
  return toBinary(AnySchema, create(AnySchema, { typeUrl: rateLimitConfigType, value }));
}

/** Hexadecimal digits of a version: 128 bits of SHA-256. */
const versionLength = 32;

function hashContent(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex').slice(0, versionLength);
}

function hashVersions(resources: ReadonlyMap<string, SnapshotResource>): string {
  let content = '';
  // The length prevents a name from imitating the version of the previous resource.
  for (const { name, version } of resources.values()) content += `${name.length}:${name}${version}`;
  return hashContent(content);
}

/** Sorts the keys of metadata, the only part in which two sources of the same rules may differ. */
function canonicalize(spec: DescriptorSpec): DescriptorSpec {
  const { metadata, descriptors } = spec;
  if (metadata === undefined && descriptors === undefined) return spec;
  return {
    ...spec,
    metadata: metadata === undefined ? undefined : sortObject(metadata),
    descriptors: descriptors?.map(canonicalize),
  };
}

function sortObject(object: JsonObject): JsonObject {
  const keys = Object.keys(object).sort(compareText);
  // fromEntries, not assignment: `__proto__` is an ordinary key.
  return Object.fromEntries(keys.map((key) => [key, sortKeys(object[key] ?? null)]));
}

function sortKeys(value: Json): Json {
  if (isList(value)) return value.map(sortKeys);
  return typeof value === 'object' && value !== null ? sortObject(value) : value;
}

// Array.isArray alone does not narrow a readonly list.
const isList = (value: Json): value is readonly Json[] => Array.isArray(value);

/** Domains of all classes; a class with rules of its own for a domain counts once more. */
export function countDomains({ resources, classes }: CommonSnapshot): number {
  return [...classes.values()].reduce((sum, { size }) => sum + size, resources.size);
}
