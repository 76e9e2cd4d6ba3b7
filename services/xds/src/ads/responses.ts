import { constants, type ServerHttp2Stream } from 'node:http2';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { type SnapshotResource, rateLimitConfigType as typeUrl } from '../catalog/snapshot.ts';
import type { DeltaReply } from './delta.ts';
import {
  diffResources,
  isWhole,
  type KnownResources,
  type ResourceDiff,
  type Selection,
} from './exchange.ts';
import type { Sender, SendGate } from './send-gate.ts';

// Responses are encoded field by field, because all streams share the encoded resources and differ
// only in the nonce. The nonce is appended last: the order of fields in protocol buffers is free.

/** Encodes an envoy.service.discovery.v3.DiscoveryResponse without its nonce. */
export function encodeDiscoveryResponse(versionInfo: string, resources: Iterable<SnapshotResource>): Buffer {
  return Buffer.concat([
    ...field(1, Buffer.from(versionInfo)),
    ...[...resources].flatMap(({ any }) => field(2, any)),
    ...field(4, Buffer.from(typeUrl)),
  ]);
}

/** Encodes an envoy.service.discovery.v3.DeltaDiscoveryResponse without its nonce. */
export function encodeDeltaDiscoveryResponse(
  systemVersionInfo: string,
  { changed, removed }: ResourceDiff,
): Buffer {
  return Buffer.concat([
    ...field(1, Buffer.from(systemVersionInfo)),
    ...changed.flatMap((resource) => field(2, encodeDeltaResource(resource))),
    ...field(4, Buffer.from(typeUrl)),
    ...removed.flatMap((name) => field(6, Buffer.from(name))),
  ]);
}

/** Adds the nonce, which is field 5 of both responses. */
export function withNonce(body: Uint8Array, nonce: string): Buffer {
  return Buffer.concat([body, ...field(5, Buffer.from(nonce))]);
}

/** Encodes an envoy.service.discovery.v3.Resource. */
function encodeDeltaResource({ name, version, any }: SnapshotResource): Buffer {
  return Buffer.concat([...field(1, Buffer.from(version)), ...field(2, any), ...field(3, Buffer.from(name))]);
}

/** Wire type of strings, bytes and messages. */
const lengthDelimited = 2;

function field(number: number, value: Uint8Array): [Uint8Array, Uint8Array] {
  return [Uint8Array.of((number << 3) | lengthDelimited, ...varint(value.length)), value];
}

/** A base 128 varint: seven bits per byte, least significant first. */
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
 * Values derived from a snapshot, computed once for all streams that need the same. They live as
 * long as the snapshot, or the selection of the one stream that subscribes by name.
 */
export class ResponseCache {
  readonly #versions = new WeakMap<KnownResources, ReadonlyMap<string, string>>();
  readonly #diffs = new WeakMap<KnownResources, WeakMap<Resources, ResourceDiff>>();
  readonly #deltaBodies = new WeakMap<ResourceDiff, Uint8Array>();
  #latestBody: { readonly resources: Resources; readonly body: Uint8Array } | undefined;

  /** Versions by name. */
  versions(resources: KnownResources): ReadonlyMap<string, string> {
    return getOrCreate(
      this.#versions,
      resources,
      () => new Map([...resources].map(([name, { version }]) => [name, version])),
    );
  }

  /** A state-of-the-world response without a nonce. Cached for the latest snapshot only. */
  sotwBody(selection: Selection): Uint8Array {
    const { snapshot, resources } = selection;
    const encode = () => encodeDiscoveryResponse(snapshot.version, resources.values());
    if (!isWhole(selection)) return encode();
    if (this.#latestBody?.resources !== resources) this.#latestBody = { resources, body: encode() };
    return this.#latestBody.body;
  }

  diff(known: KnownResources, next: Resources): ResourceDiff {
    const fromKnown = getOrCreate(this.#diffs, known, () => new WeakMap<Resources, ResourceDiff>());
    return getOrCreate(fromKnown, next, () => diffResources(known, next));
  }

  /** An incremental response without a nonce. */
  deltaBody({ diff, selection }: DeltaReply): Uint8Array {
    return getOrCreate(this.#deltaBodies, diff, () =>
      encodeDeltaDiscoveryResponse(selection.snapshot.version, diff),
    );
  }
}

function getOrCreate<Key extends object, Value extends object>(
  cache: WeakMap<Key, Value>,
  key: Key,
  create: () => Value,
): Value {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const created = create();
  cache.set(key, created);
  return created;
}

export interface ResponseWriterOptions {
  readonly gate: SendGate;
  /** Address of the client. */
  readonly peer: string;
  readonly hasAcknowledged: () => boolean;
  /** How long the client may take to read a response before the call is reset. */
  readonly sendTimeoutMs: number;
  /** Called when the next response may be written. */
  readonly onReady: () => void;
  /** Called before the call is reset. */
  readonly onTimeout: () => void;
}

/** Writes the responses of one stream, one at a time. */
export class ResponseWriter {
  readonly #call: ServerDuplexStream<Uint8Array, Uint8Array>;
  readonly #options: ResponseWriterOptions;
  readonly #sender: Sender;
  #release: (() => void) | undefined;

  constructor(call: ServerDuplexStream<Uint8Array, Uint8Array>, options: ResponseWriterOptions) {
    this.#call = call;
    this.#options = options;
    const { peer, hasAcknowledged, onReady } = options;
    this.#sender = { peer, hasAcknowledged, retry: onReady, cutOff: () => this.#cutOff() };
    call.on('close', () => this.#release?.());
  }

  /** Whether the client has not read the last response yet. */
  get busy(): boolean {
    return this.#release !== undefined;
  }

  /** False when there is no capacity; `onReady` is called when there may be. */
  write(body: Uint8Array, nonce: string): boolean {
    const leaveGate = this.#options.gate.enter(this.#sender, body.length);
    if (leaveGate === undefined) return false;
    const timeout = setTimeout(() => this.#cutOff(), this.#options.sendTimeoutMs).unref();
    this.#release = () => {
      this.#release = undefined;
      clearTimeout(timeout);
      leaveGate();
    };
    // Unlike 'drain', this callback waits until the client has read the message.
    this.#call.write(withNonce(body, nonce), () => {
      this.#release?.();
      this.#options.onReady();
    });
    return true;
  }

  /** Leaves the queue. A response in flight keeps its capacity. */
  leave(): void {
    this.#options.gate.leave(this.#sender);
  }

  #cutOff(): void {
    this.#options.onTimeout();
    // Also after the call has ended: a client that does not read the response does not read the
    // status behind it.
    resetCall(this.#call);
  }
}

/**
 * Resets the HTTP/2 stream of a call and drops what it has not sent. The library ends a call only
 * behind what was written, which stays in memory as long as a client that does not read is
 * connected.
 */
function resetCall(call: object): void {
  // The library does not expose the stream. If the property moves, a test of clients that do not
  // read fails.
  const { stream } = (call as { readonly call?: { readonly stream?: ServerHttp2Stream } }).call ?? {};
  stream?.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}
