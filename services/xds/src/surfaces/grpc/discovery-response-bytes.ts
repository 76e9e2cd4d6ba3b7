import type { SnapshotResource } from '../../domain/snapshot.ts';

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
