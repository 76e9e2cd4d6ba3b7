import { createHash } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { compareText } from '@tollgate/kit/text';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import type { DescriptorSpec, JsonObject, JsonValue, RuleDocument } from '@tollgate/rules/rule-document';
import { toMessage } from '@tollgate/rules/rule-message';

/** One ADS resource: the rules of one domain. */
export interface SnapshotResource {
  /** The domain. */
  readonly name: string;
  /** Hash of the content, in hexadecimal: equal for equal rules, whoever computes it and when. */
  readonly version: string;
  /** The encoded `google.protobuf.Any` that holds the `ratelimit.config.ratelimit.v3.RateLimitConfig`. */
  readonly any: Uint8Array;
}

/** Everything that is served at one moment. */
export interface Snapshot {
  /** Hash over the names and versions of all resources. */
  readonly version: string;
  /** By name, in the order of the names by code units. */
  readonly resources: ReadonlyMap<string, SnapshotResource>;
}

/** Builds one snapshot after the other; those that were handed out never change. */
export interface SnapshotBuilder {
  /** Sets the encoded rules of a domain. */
  put(name: string, any: Uint8Array): void;
  remove(name: string): void;
  /** Everything as it is now; the same object as last time when nothing has changed. */
  build(): Snapshot;
}

/** Makes one that has nothing. `hash` answers hexadecimal. */
export function createSnapshotBuilder(hash: (content: Uint8Array | string) => string): SnapshotBuilder {
  let resources = new Map<string, SnapshotResource>();
  /** Present in `resources`, and perhaps not at the place where its name belongs. */
  let isSorted = true;
  let last: Snapshot | undefined;

  return {
    put(name, any) {
      const version = hash(any);
      const known = resources.get(name);
      if (known?.version === version) return;
      forkIfShown();
      if (known === undefined) isSorted = false;
      resources.set(name, { name, version, any });
    },
    remove(name) {
      if (!resources.has(name)) return;
      forkIfShown();
      resources.delete(name);
    },
    build() {
      if (last !== undefined && last.resources === resources) return last;
      if (!isSorted) resources = new Map([...resources].sort(([a], [b]) => compareText(a, b)));
      isSorted = true;
      last = { version: hash(contentOf(resources)), resources };
      return last;
    },
  };

  /** What is in a snapshot belongs to it: changes go to a copy. */
  function forkIfShown(): void {
    if (last?.resources === resources) resources = new Map(resources);
  }
}

/** Names and versions as one text. The lengths keep apart what a name could otherwise pretend to be. */
function contentOf(resources: ReadonlyMap<string, SnapshotResource>): string {
  let content = '';
  for (const { name, version } of resources.values()) content += `${name.length}:${name}${version}`;
  return content;
}

/** The snapshot in force, and who wants to hear of the next one. */
export interface SnapshotStore {
  /** Undefined until the source has synced: nothing is served before. */
  current(): Snapshot | undefined;
  /** Puts a snapshot in force; one of the same version changes nothing and is told to nobody. */
  set(snapshot: Snapshot): void;
  /** Calls the listener with each new snapshot, until the returned function is called. */
  onChange(listener: (snapshot: Snapshot) => void): () => void;
}

/** Makes an empty store. */
export function createSnapshotStore(): SnapshotStore {
  const listeners = new Set<(snapshot: Snapshot) => void>();
  let current: Snapshot | undefined;
  return {
    current: () => current,
    set(snapshot) {
      if (snapshot.version === current?.version) return;
      current = snapshot;
      for (const listener of [...listeners]) listener(snapshot);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** Type of the resources that are served, as ADS has it. */
export const rateLimitConfigType = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

/** The encoded `google.protobuf.Any` of a domain's rules: equal bytes for equal rules. */
export function encodeRules({ descriptors, ...document }: RuleDocument): Uint8Array {
  const message = toMessage({ ...document, descriptors: descriptors.map(canonical) });
  const value = toBinary(RateLimitConfigSchema, message);
  return toBinary(AnySchema, create(AnySchema, { typeUrl: rateLimitConfigType, value }));
}

/** Hexadecimal digits of a version: 128 bits of SHA-256, which nobody finds a second content for by accident. */
const versionLength = 32;

/** The version of a content. */
export function hashContent(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex').slice(0, versionLength);
}

/** With metadata in the order of its keys, which is all that two sources of the same rules may differ in. */
function canonical(spec: DescriptorSpec): DescriptorSpec {
  const { metadata, descriptors } = spec;
  if (metadata === undefined && descriptors === undefined) return spec;
  return {
    ...spec,
    metadata: metadata === undefined ? undefined : sortObject(metadata),
    descriptors: descriptors?.map(canonical),
  };
}

function sortObject(object: JsonObject): JsonObject {
  const keys = Object.keys(object).sort(compareText);
  // fromEntries, not assignment: `__proto__` is a key like any other.
  return Object.fromEntries(keys.map((key) => [key, sortKeys(object[key] ?? null)]));
}

function sortKeys(value: JsonValue): JsonValue {
  if (isList(value)) return value.map(sortKeys);
  return typeof value === 'object' && value !== null ? sortObject(value) : value;
}

// Array.isArray alone does not narrow a readonly list.
const isList = (value: JsonValue): value is readonly JsonValue[] => Array.isArray(value);
