import { type SnapshotResource, rateLimitConfigType as typeUrl } from '../catalog/snapshot.ts';
import type { DeltaReply } from './delta.ts';
import {
  type DeltaDiff,
  diffResources,
  isWhole,
  type KnownResources,
  type Selection,
} from './subscription.ts';

// Responses are written field by field, because the encoded resources are there already and all streams share them: only
// the nonce differs. Written last, it is appended to what the streams have in common. Protocol buffers leave the order free.

/** What a state-of-the-world response holds besides its nonce. */
export interface DiscoveryResponseContent {
  readonly versionInfo: string;
  readonly typeUrl: string;
  readonly resources: Iterable<SnapshotResource>;
}

/** What an incremental response holds besides its nonce. */
export interface DeltaDiscoveryResponseContent {
  readonly systemVersionInfo: string;
  readonly typeUrl: string;
  readonly changed: readonly SnapshotResource[];
  readonly removed: readonly string[];
}

/** Encodes an envoy.service.discovery.v3.DiscoveryResponse but for its nonce. */
export function discoveryResponseBody({ versionInfo, typeUrl, resources }: DiscoveryResponseContent): Buffer {
  return Buffer.concat([
    ...field(1, text(versionInfo)),
    ...[...resources].flatMap(({ any }) => field(2, any)),
    ...field(4, text(typeUrl)),
  ]);
}

/** Encodes an envoy.service.discovery.v3.DeltaDiscoveryResponse but for its nonce. */
export function deltaDiscoveryResponseBody(content: DeltaDiscoveryResponseContent): Buffer {
  const { systemVersionInfo, typeUrl, changed, removed } = content;
  return Buffer.concat([
    ...field(1, text(systemVersionInfo)),
    ...changed.flatMap((resource) => field(2, deltaResource(resource))),
    ...field(4, text(typeUrl)),
    ...removed.flatMap((name) => field(6, text(name))),
  ]);
}

/** A response: the body of either kind, with its nonce. The nonce is field 5 of both. */
export function withNonce(body: Uint8Array, nonce: string): Buffer {
  return Buffer.concat([body, ...field(5, text(nonce))]);
}

/** Encodes an envoy.service.discovery.v3.Resource. */
function deltaResource({ name, version, any }: SnapshotResource): Buffer {
  return Buffer.concat([...field(1, text(version)), ...field(2, any), ...field(3, text(name))]);
}

/** Wire type of strings, bytes and messages. */
const lengthDelimited = 2;

/** One field, as pieces: its key and length, then its value. */
function field(number: number, value: Uint8Array): [Uint8Array, Uint8Array] {
  return [Uint8Array.of((number << 3) | lengthDelimited, ...varint(value.length)), value];
}

function text(value: string): Buffer {
  return Buffer.from(value, 'utf8');
}

/** A base 128 varint: seven bits a byte, the least significant first. */
function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  return [...bytes, rest];
}

type Resources = ReadonlyMap<string, SnapshotResource>;

/**
 * What is derived from a snapshot once, for all streams that want the same of it. It lasts as long as the snapshot, or
 * the selection of the one stream that names what it wants, is in use.
 */
export interface ResponseCache {
  /** Versions by name. */
  versions(resources: KnownResources): ReadonlyMap<string, string>;
  /**
   * The state-of-the-world response, without a nonce. Only that of the latest whole snapshot is remembered: nobody is sent
   * an older one any more, and who names what it wants has a response of its own.
   */
  sotwBody(selection: Selection): Uint8Array;
  diff(known: KnownResources, next: Resources): DeltaDiff;
  /** The incremental response, without a nonce. */
  deltaBody(reply: DeltaReply): Uint8Array;
}

/** Makes an empty cache. */
export function createResponseCache(): ResponseCache {
  let latest: { readonly resources: Resources; readonly body: Uint8Array } | undefined;

  function wholeBody(selection: Selection): Uint8Array {
    const { resources } = selection;
    if (latest?.resources !== resources) latest = { resources, body: encodeSotw(selection) };
    return latest.body;
  }

  const deltaBody = onceFor(
    ({ diff }: DeltaReply) => diff,
    ({ selection, diff }: DeltaReply) =>
      deltaDiscoveryResponseBody({ systemVersionInfo: selection.snapshot.version, typeUrl, ...diff }),
  );
  const versions = onceFor(
    (resources: KnownResources) => resources,
    (resources) => new Map([...resources].map(([name, { version }]) => [name, version])),
  );
  const diffsFrom = onceFor(
    (known: KnownResources) => known,
    (known) =>
      onceFor(
        (next: Resources) => next,
        (next) => diffResources(known, next),
      ),
  );
  return {
    versions,
    sotwBody: (selection) => (isWhole(selection) ? wholeBody(selection) : encodeSotw(selection)),
    deltaBody,
    diff: (known, next) => diffsFrom(known)(next),
  };
}

function encodeSotw({ snapshot, resources }: Selection): Uint8Array {
  return discoveryResponseBody({ versionInfo: snapshot.version, typeUrl, resources: resources.values() });
}

/** Remembers what `make` answers for as long as the object that `keyOf` gives is in use. */
function onceFor<Input, Output>(
  keyOf: (input: Input) => object,
  make: (input: Input) => Output,
): (input: Input) => Output {
  const made = new WeakMap<object, { readonly output: Output }>();
  return (input) => {
    const key = keyOf(input);
    const known = made.get(key);
    if (known !== undefined) return known.output;
    const output = make(input);
    made.set(key, { output });
    return output;
  };
}
