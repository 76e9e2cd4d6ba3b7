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

/** All resources at one moment. Immutable. */
export interface Snapshot {
  /** Hash of the names and versions of all resources. */
  readonly version: string;
  /** Resources by name, sorted by code units. */
  readonly resources: ReadonlyMap<string, SnapshotResource>;
}

/** Builds snapshots one after the other, sharing what has not changed. */
export class SnapshotBuilder {
  #resources = new Map<string, SnapshotResource>();
  #isSorted: boolean = true;
  #last: Snapshot | undefined;

  put(domain: string, document: RuleDocument): void {
    const any = encodeRules(document);
    const version = hashContent(any);
    const known = this.#resources.get(domain);
    if (known?.version === version) return;
    this.#copyIfShared();
    if (known === undefined) this.#isSorted = false;
    this.#resources.set(domain, { name: domain, version, any });
  }

  remove(domain: string): void {
    if (!this.#resources.has(domain)) return;
    this.#copyIfShared();
    this.#resources.delete(domain);
  }

  /** Returns the previous object when nothing has changed. */
  build(): Snapshot {
    if (this.#last !== undefined && this.#last.resources === this.#resources) return this.#last;
    if (!this.#isSorted)
      this.#resources = new Map([...this.#resources].sort(([a], [b]) => compareText(a, b)));
    this.#isSorted = true;
    this.#last = { version: hashVersions(this.#resources), resources: this.#resources };
    return this.#last;
  }

  /** The map of a snapshot does not change: changes go to a copy. */
  #copyIfShared(): void {
    if (this.#last?.resources === this.#resources) this.#resources = new Map(this.#resources);
  }
}

/** The snapshot in force. */
export class SnapshotStore {
  readonly #nowMs: () => number;
  readonly #listeners = new Set<(snapshot: Snapshot) => void>();
  readonly #sinceMs = new WeakMap<Snapshot, number>();
  #current: Snapshot | undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Undefined until the source has synced: nothing is served before. */
  current(): Snapshot | undefined {
    return this.#current;
  }

  /** A no-op for a snapshot of the same version. */
  set(snapshot: Snapshot): void {
    if (snapshot.version === this.#current?.version) return;
    this.#current = snapshot;
    this.#sinceMs.set(snapshot, this.#nowMs());
    for (const listener of [...this.#listeners]) listener(snapshot);
  }

  /** When a snapshot came into force; undefined for one that never did. */
  sinceMs(snapshot: Snapshot): number | undefined {
    return this.#sinceMs.get(snapshot);
  }

  /** Returns the function that unsubscribes. */
  onChange(listener: (snapshot: Snapshot) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
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
