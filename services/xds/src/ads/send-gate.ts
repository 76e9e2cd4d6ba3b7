import { constants, type ServerHttp2Stream } from 'node:http2';
import { Metadata, type ServerDuplexStream } from '@grpc/grpc-js';
import type { Schedule } from '@tollgate/kit/time';
import { encodeNonce } from './exchange.ts';

/** A stream, as the gate sees it. */
export interface Sender {
  /** Address of the client: streams of one peer share its part of the capacity. */
  readonly peer: string;
  /** Whether the client has acknowledged a response; part of the capacity is reserved for those. */
  hasAcknowledged(): boolean;
  /** Called once when there may be capacity for the response that was turned away. */
  retry(): void;
  /** Ends the stream, because it blocks others. */
  cutOff(): void;
}

export interface SendGateOptions {
  /** Bytes in flight, over all streams. */
  readonly maxBytes: number;
  /** While others wait, a response that has not been read for this long ends its stream. */
  readonly stallMs: number;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  readonly schedule: Schedule;
}

/**
 * Flow control over all streams: bounds the bytes that were written and that clients have not read
 * yet. A peer has a share, half is reserved for clients that have acknowledged a response, and
 * waiting streams are served round-robin by peer.
 */
export class SendGate {
  readonly #options: SendGateOptions;
  readonly #queue = new SendQueue();
  readonly #capacity: SendCapacity;
  #cancelCheck: (() => void) | undefined;
  /** The sender being retried: it does not queue behind others. */
  #retrying: Sender | undefined;
  /** A waiting sender exceeds the total capacity: overtaking it would starve large responses. */
  #isFull: boolean = false;
  #isFullForNewClients: boolean = false;

  constructor(options: SendGateOptions) {
    this.#options = options;
    this.#capacity = new SendCapacity(options.maxBytes);
  }

  /**
   * Takes capacity for a response and returns the function that releases it. Undefined when there
   * is none: the sender is queued and `sender.retry` is called later. The response is not kept, so
   * that the retry sends the latest one.
   */
  enter(sender: Sender, bytes: number): (() => void) | undefined {
    const mayEnter = this.#retrying === sender || !this.#mustQueue(sender);
    if (!mayEnter || this.#capacity.exceededBy(sender, bytes) !== undefined) {
      this.#queue.add(sender, bytes);
      this.#updateFull(sender, bytes);
      this.#scheduleCheck();
      return undefined;
    }
    this.#queue.remove(sender);
    const response = this.#capacity.take(sender, bytes, this.#options.now());
    return () => {
      if (this.#capacity.release(response)) this.#serveQueue();
    };
  }

  /** Removes a sender from the queue. */
  leave(sender: Sender): void {
    if (this.#queue.remove(sender)) this.#serveQueue();
  }

  #mustQueue(sender: Sender): boolean {
    return this.#isFullFor(sender) || this.#queue.hasBefore(sender);
  }

  #isFullFor(sender: Sender): boolean {
    return sender.hasAcknowledged() ? this.#isFull : this.#isFullForNewClients;
  }

  #updateFull(sender: Sender, bytes: number): void {
    if (this.#capacity.exceededBy(sender, bytes) !== 'total') return;
    this.#isFullForNewClients = true;
    if (sender.hasAcknowledged()) this.#isFull = true;
  }

  #serveQueue(): void {
    this.#isFull = false;
    this.#isFullForNewClients = false;
    for (const { sender, bytes } of this.#queue.heads()) {
      if (this.#isFullFor(sender)) continue;
      if (this.#capacity.exceededBy(sender, bytes) !== undefined) {
        this.#updateFull(sender, bytes);
        continue;
      }
      this.#queue.remove(sender);
      // A retry may serve the queue again.
      const before = this.#retrying;
      this.#retrying = sender;
      sender.retry();
      this.#retrying = before;
    }
    this.#scheduleCheck();
  }

  #scheduleCheck(): void {
    if (this.#queue.isEmpty || this.#cancelCheck !== undefined) return;
    this.#cancelCheck = this.#options.schedule(this.#options.stallMs / 4, () => {
      this.#cancelCheck = undefined;
      while (this.#cutStalled()) this.#serveQueue();
      this.#scheduleCheck();
    });
  }

  /** Cuts the longest stalled stream that blocks a queued one; false when there is none. */
  #cutStalled(): boolean {
    const stalledSinceMs = this.#options.now() - this.#options.stallMs;
    for (const { sender, bytes } of this.#queue.heads()) {
      const oldest = this.#capacity.oldestBlocking(sender, bytes);
      if (oldest === undefined || oldest.sinceMs > stalledSinceMs) continue;
      // Released before the stream has ended, which may take a while: its bytes are dropped.
      this.#capacity.release(oldest);
      oldest.sender.cutOff();
      return true;
    }
    return false;
  }
}

interface WaitingSender {
  readonly sender: Sender;
  readonly bytes: number;
}

type PeerQueue = Map<Sender, WaitingSender>;

/** Waiting senders: clients with an acknowledgement first, then round-robin by peer. */
class SendQueue {
  /** Streams by peer, in the order of their turns; within a peer first in, first out. */
  readonly #acknowledged = new Map<string, PeerQueue>();
  readonly #newClients = new Map<string, PeerQueue>();

  get isEmpty(): boolean {
    return this.#acknowledged.size === 0 && this.#newClients.size === 0;
  }

  /** A sender that is already queued keeps its position. */
  add(sender: Sender, bytes: number): void {
    const queues = this.#queuesFor(sender);
    removeFrom(queues === this.#acknowledged ? this.#newClients : this.#acknowledged, sender);
    const queue: PeerQueue = queues.get(sender.peer) ?? new Map();
    queues.set(sender.peer, queue.set(sender, { sender, bytes }));
  }

  /** The peer of a removed sender has its next turn after all others. False if not queued. */
  remove(sender: Sender): boolean {
    return removeFrom(this.#acknowledged, sender) || removeFrom(this.#newClients, sender);
  }

  /** Whether another sender of the same peer goes first. */
  hasBefore(sender: Sender): boolean {
    const { peer } = sender;
    const queues = this.#queuesFor(sender);
    const [first = sender] = queues.get(peer)?.keys() ?? [];
    return first !== sender || (queues === this.#newClients && this.#acknowledged.has(peer));
  }

  /** The first sender of each peer, once per turn. */
  *heads(): Generator<WaitingSender> {
    for (const queues of [this.#acknowledged, this.#newClients]) {
      for (const queue of queues.values()) {
        const [first] = queue.values();
        if (first !== undefined) yield first;
      }
    }
  }

  #queuesFor(sender: Sender): Map<string, PeerQueue> {
    return sender.hasAcknowledged() ? this.#acknowledged : this.#newClients;
  }
}

function removeFrom(queues: Map<string, PeerQueue>, sender: Sender): boolean {
  const queue = queues.get(sender.peer);
  if (queue?.delete(sender) !== true) return false;
  // Inserted again, so that the peer comes last.
  queues.delete(sender.peer);
  if (queue.size > 0) queues.set(sender.peer, queue);
  return true;
}

/** A response that was written and has not been read. */
interface ResponseInFlight {
  readonly sender: Sender;
  readonly bytes: number;
  readonly isNewClient: boolean;
  readonly sinceMs: number;
}

/** Part of the capacity for one peer: one that reads nothing leaves seven eighths to others. */
const peerShare = 1 / 8;

/** Part of the capacity, and of each peer's share, for clients without an acknowledgement. */
const newClientShare = 1 / 2;

interface Usage {
  bytes: number;
  newClientBytes: number;
}

interface CapacityLimit {
  readonly scope: 'peer' | 'total';
  readonly used: number;
  readonly most: number;
  /** Whether a response in flight counts against this limit. */
  readonly covers: (response: ResponseInFlight) => boolean;
  readonly newClientsOnly?: boolean;
}

/** Accounts for bytes in flight. Under each limit one response is admitted whatever its size. */
class SendCapacity {
  readonly #maxBytes: number;
  /** The oldest first. */
  readonly #inFlight = new Set<ResponseInFlight>();
  readonly #total: Usage = { bytes: 0, newClientBytes: 0 };
  readonly #byPeer = new Map<string, Usage>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Undefined when a response of this size fits. */
  exceededBy(sender: Sender, bytes: number): CapacityLimit['scope'] | undefined {
    return this.#exceededLimits(sender, bytes)[0]?.scope;
  }

  oldestBlocking(sender: Sender, bytes: number): ResponseInFlight | undefined {
    const exceeded = this.#exceededLimits(sender, bytes);
    return [...this.#inFlight].find((response) => exceeded.some(({ covers }) => covers(response)));
  }

  take(sender: Sender, bytes: number, sinceMs: number): ResponseInFlight {
    const response = { sender, bytes, isNewClient: !sender.hasAcknowledged(), sinceMs };
    this.#inFlight.add(response);
    this.#add(response, bytes);
    return response;
  }

  /** False when it was released before. */
  release(response: ResponseInFlight): boolean {
    if (!this.#inFlight.delete(response)) return false;
    this.#add(response, -response.bytes);
    return true;
  }

  #add({ sender: { peer }, isNewClient }: ResponseInFlight, bytes: number): void {
    const own = this.#byPeer.get(peer) ?? { bytes: 0, newClientBytes: 0 };
    for (const usage of [this.#total, own]) {
      usage.bytes += bytes;
      if (isNewClient) usage.newClientBytes += bytes;
    }
    if (own.bytes === 0) this.#byPeer.delete(peer);
    else this.#byPeer.set(peer, own);
  }

  /** The limits that a response of this size exceeds, those on the total first. */
  #exceededLimits(sender: Sender, bytes: number): readonly CapacityLimit[] {
    const own = this.#byPeer.get(sender.peer) ?? { bytes: 0, newClientBytes: 0 };
    const share = this.#maxBytes * peerShare;
    const isOfPeer = (response: ResponseInFlight): boolean => response.sender.peer === sender.peer;
    const isNewClient = (response: ResponseInFlight): boolean => response.isNewClient;
    const limits: readonly CapacityLimit[] = [
      { scope: 'total', used: this.#total.bytes, most: this.#maxBytes, covers: () => true },
      {
        scope: 'total',
        used: this.#total.newClientBytes,
        most: this.#maxBytes * newClientShare,
        covers: isNewClient,
        newClientsOnly: true,
      },
      { scope: 'peer', used: own.bytes, most: share, covers: isOfPeer },
      {
        scope: 'peer',
        used: own.newClientBytes,
        most: share * newClientShare,
        covers: (response) => isOfPeer(response) && isNewClient(response),
        newClientsOnly: true,
      },
    ];
    return limits.filter(
      ({ newClientsOnly = false, used, most }) =>
        !(newClientsOnly && sender.hasAcknowledged()) && used > 0 && used + bytes > most,
    );
  }
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
    writeMessage(this.#call, [encodeNonce(nonce), body], () => {
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
    // The stream is reset even when the call has ended: a client that does not read the response
    // does not read the status behind it.
    resetCall(this.#call);
  }
}

/** Bytes of the prefix of a gRPC message: whether it is compressed, and its length. */
const prefixBytes = 5;

/**
 * Writes a message in parts, without copying them: all streams share the body of a response. The
 * library would copy it for each of them, which took 250 MB with 5,000 domains and 300 limiters.
 * `onRead` is called when the client has read it, and not after the call has ended.
 */
function writeMessage(
  call: ServerDuplexStream<Uint8Array, Uint8Array>,
  parts: readonly Uint8Array[],
  onRead: () => void,
): void {
  const stream = getHttp2Stream(call);
  if (stream === undefined) {
    call.write(Buffer.concat(parts), onRead);
    return;
  }
  // Sends the headers before the first message.
  call.sendMetadata(new Metadata());
  if (stream.destroyed || stream.closed) return;
  const prefix = Buffer.alloc(prefixBytes);
  prefix.writeUInt32BE(
    parts.reduce((sum, { length }) => sum + length, 0),
    1,
  );
  stream.cork();
  stream.write(prefix);
  for (const [index, part] of parts.entries())
    stream.write(part, (error) => {
      if (index === parts.length - 1 && (error ?? undefined) === undefined) onRead();
    });
  stream.uncork();
}

/** Undefined should the library move the property: then messages are copied. */
function getHttp2Stream(call: object): ServerHttp2Stream | undefined {
  return (call as { readonly call?: { readonly stream?: ServerHttp2Stream } }).call?.stream;
}

/**
 * Resets the HTTP/2 stream of a call and drops what it has not sent. The library ends a call only
 * behind what was written, which stays in memory as long as a client that does not read is
 * connected.
 */
export function resetCall(call: object): void {
  // If the property moves, a test of clients that do not read fails.
  getHttp2Stream(call)?.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}
