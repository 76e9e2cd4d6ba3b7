import type { Socket } from 'node:net';
import type { Peer } from './call.ts';
import type { BufferAccount, BufferHolder, ClientBuffers } from './client-buffers.ts';
import { connectionWindowBytes, PrefaceReader, StallDetector } from './connection-state.ts';
import {
  ConnectionError,
  defaultWindowBytes,
  ErrorCode,
  expectConnection,
  expectLength,
  Flag,
  FrameReader,
  FrameType,
  frame,
  maxWindowBytes,
  numberFrame,
  readSettings,
  Setting,
  settingsFrame,
} from './frames.ts';
import { headerTableBytes } from './hpack/decoder.ts';
import type { Limits } from './limits.ts';
import { type FlushQueue, Output } from './output.ts';
import { type CallHost, Streams } from './streams.ts';

/** Shared by all connections of a server. */
export interface ConnectionHost extends CallHost {
  readonly buffers: ClientBuffers;
  readonly flushQueue: FlushQueue;
  /** Called with the GOAWAY code and reason when a client violates the protocol. */
  readonly onViolation: (code: number, reason: string, peer: Peer) => void;
  /** Called with an unexpected error, which ends one connection. */
  readonly onInternalError: (error: unknown) => void;
}

/** Freeing smaller chunks costs more than it saves. */
const minFreedBytes = 16 * 1024;

/** Time for a client to close its side after ours. */
const closeGraceMs = 250;

/** One HTTP/2 connection: its preface, settings and end. */
export class Connection implements BufferHolder {
  readonly protocol = 'grpc';
  readonly peer: Peer;
  readonly openedMs: number;
  /** When the last bytes arrived; `performance.now()`. */
  activeMs: number;
  readonly #socket: Socket;
  readonly #host: ConnectionHost;
  readonly #output: Output;
  readonly #streams: Streams;
  readonly #reader = new FrameReader();
  readonly #preface = new PrefaceReader();
  readonly #unread: StallDetector;
  readonly #blocked: StallDetector;
  readonly #account: BufferAccount;
  /** All frames of the current chunk are DATA of requests that go on, which are copied. */
  #copied: boolean = false;
  #settingsReceived: boolean = false;
  #goneAway: boolean = false;
  #draining: boolean = false;
  #closed: boolean = false;

  constructor(socket: Socket, host: ConnectionHost, peer: Peer) {
    this.#socket = socket;
    this.#host = host;
    this.peer = peer;
    this.openedMs = performance.now();
    this.activeMs = this.openedMs;
    this.#output = new Output(socket, () => host.flushQueue.add(this.#output));
    this.#streams = new Streams(host, { peer, output: this.#output, onLastEnd: () => this.#end() });
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('drain', () => this.#resume());
    socket.once('close', () => this.#onClose());
    this.#unread = new StallDetector(host.limits.writeStallTimeoutMs);
    this.#blocked = new StallDetector(host.limits.writeStallTimeoutMs);
    this.#account = host.buffers.open(this);
    this.#sendSettings(host.limits);
  }

  #sendSettings(limits: Limits): void {
    this.#output.append(
      settingsFrame([
        [Setting.MAX_CONCURRENT_STREAMS, limits.maxConcurrentStreams],
        [Setting.MAX_HEADER_LIST_SIZE, limits.maxHeaderListBytes],
        [Setting.HEADER_TABLE_SIZE, headerTableBytes],
      ]),
    );
    const extra = connectionWindowBytes - defaultWindowBytes;
    this.#output.append(numberFrame(FrameType.WINDOW_UPDATE, 0, extra));
  }

  get address(): string {
    return this.peer.address;
  }

  /** Streams that are open. */
  get streamCount(): number {
    return this.#streams.size;
  }

  /** Whether the client has completed its preface and its first SETTINGS. */
  get established(): boolean {
    return this.#settingsReceived;
  }

  /** Whether there has been a request. */
  get used(): boolean {
    return this.#streams.lastId > 0;
  }

  /** Completes the calls in flight, refuses new ones, and closes. */
  drain(): void {
    if (this.#draining || this.#goneAway) return;
    this.#draining = true;
    if (!this.#settingsReceived) {
      this.destroy();
      return;
    }
    // RFC 9113 §6.8: the last identifier is announced after a round trip, so that requests on the
    // wire are not lost.
    this.#output.append(numberFrame(FrameType.GOAWAY, 0, maxWindowBytes, ErrorCode.NO_ERROR));
    this.#output.append(frame(FrameType.PING, 0, 0, drainPing));
  }

  /** Starts the second phase of a drain: no further streams are accepted. */
  finishDrain(): void {
    if (this.#goneAway || !this.#draining) return;
    this.#goneAway = true;
    this.#streams.closing = true;
    this.#output.append(numberFrame(FrameType.GOAWAY, 0, this.#streams.lastId, ErrorCode.NO_ERROR));
    this.#streams.endStreaming();
    if (this.#streams.size === 0) this.#end();
  }

  /** Sends a PING; its acknowledgement counts as activity. */
  ping(): void {
    this.#output.append(frame(FrameType.PING, 0, 0, keepalivePing));
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Frees memory: refuses the largest incomplete request, or ends the connection. */
  shed(): void {
    const stream = this.#streams.findLargestIncomplete();
    if (stream !== undefined && 2 * this.#streams.heldBytes > this.#account.bytes) {
      this.#streams.shed(stream);
      this.#updateAccount();
    } else {
      this.#violate(ErrorCode.ENHANCE_YOUR_CALM, 'the client does not take its replies');
      this.destroy();
      this.#account.set(0);
    }
  }

  #updateAccount(): void {
    if (this.#closed) return;
    const { heldBytes, replies } = this.#streams;
    this.#account.set(
      heldBytes + this.#reader.heldBytes + replies.waitingBytes + this.#socket.writableLength,
    );
  }

  /** Enforces timeouts: of calls, of incomplete requests, and of clients that do not read. */
  sweep(nowMs: number): void {
    this.#streams.sweep(nowMs);
    const { waitingBytes, resumedBytes } = this.#streams.replies;
    const { bytesWritten, writableLength } = this.#socket;
    const taken = bytesWritten - writableLength;
    const isUnread = this.#unread.isStalled(nowMs, writableLength, taken);
    const isBlocked = this.#blocked.isStalled(nowMs, waitingBytes, resumedBytes);
    if (isUnread || isBlocked) this.destroy();
    else this.#updateAccount();
  }

  #onData(chunk: Buffer): void {
    this.activeMs = performance.now();
    this.#streams.nowMs = this.activeMs;
    if (this.#closed) return;
    try {
      let rest = chunk;
      if (!this.#preface.done) {
        rest = this.#preface.read(chunk);
        if (rest.length === 0) return;
      }
      this.#copied = true;
      this.#reader.read(rest, this.#onFrame);
      this.#updateAccount();
      if (this.#copied && chunk.length >= minFreedBytes) free(chunk);
    } catch (error) {
      if (error instanceof ConnectionError) {
        this.#violate(error.code, error.message);
      } else {
        // A bug ends this connection, not the process.
        this.#host.onInternalError(error);
        this.#fail(ErrorCode.INTERNAL_ERROR, 'internal error');
      }
    }
    // Limits replies that the client does not read. 'drain' follows.
    if (this.#socket.writableLength > this.#host.limits.maxWriteBufferBytes) this.#socket.pause();
  }

  #resume(): void {
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  readonly #onFrame = (type: number, flags: number, streamId: number, payload: Buffer): void => {
    if (this.#closed) return;
    if (!this.#settingsReceived && (type !== FrameType.SETTINGS || (flags & Flag.ACK) !== 0)) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'the first frame is not SETTINGS');
    }
    this.#streams.expectBlock(type, streamId);
    if (type !== FrameType.DATA) this.#copied = false;
    switch (type) {
      case FrameType.HEADERS:
        this.#streams.onHeaders(flags, streamId, payload);
        return;
      case FrameType.CONTINUATION:
        this.#streams.onContinuation(flags, payload);
        return;
      case FrameType.DATA:
        if ((flags & Flag.END_STREAM) !== 0) this.#copied = false;
        this.#streams.onData(flags, streamId, payload);
        return;
      default:
        this.#streams.spendOverhead();
        this.#onControlFrame(type, flags, streamId, payload);
    }
  };

  #onControlFrame(type: number, flags: number, streamId: number, payload: Buffer): void {
    switch (type) {
      case FrameType.SETTINGS:
        this.#onSettings(flags, streamId, payload);
        return;
      case FrameType.PING:
        this.#onPing(flags, streamId, payload);
        return;
      case FrameType.WINDOW_UPDATE:
        this.#streams.onWindowUpdate(streamId, payload);
        return;
      case FrameType.RST_STREAM:
        this.#streams.onReset(streamId, payload);
        return;
      case FrameType.PRIORITY:
        this.#streams.onPriority(streamId, payload);
        return;
      case FrameType.GOAWAY:
        expectConnection(streamId, 'GOAWAY');
        return;
      case FrameType.PUSH_PROMISE:
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'PUSH_PROMISE from a client');
      default:
      // RFC 9113 §5.5: unknown types are ignored.
    }
  }

  #onSettings(flags: number, streamId: number, payload: Buffer): void {
    expectConnection(streamId, 'SETTINGS');
    if ((flags & Flag.ACK) !== 0) {
      expectLength(payload, 0, 'acknowledged SETTINGS');
      return;
    }
    // Only the last value of a frame is applied: each one visits all streams, and a frame has
    // thousands.
    let initialWindow: number | undefined;
    for (const [id, value] of readSettings(payload)) {
      if (id === Setting.INITIAL_WINDOW_SIZE) initialWindow = value;
    }
    if (initialWindow !== undefined) this.#streams.setInitialWindow(initialWindow);
    this.#settingsReceived = true;
    this.#output.append(frame(FrameType.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)));
    // This follows the acknowledgement: what follows it is sent under the new settings.
    this.#streams.replies.resume();
  }

  #onPing(flags: number, streamId: number, payload: Buffer): void {
    expectConnection(streamId, 'PING');
    expectLength(payload, 8, 'PING');
    if ((flags & Flag.ACK) === 0) this.#output.append(frame(FrameType.PING, Flag.ACK, 0, payload));
    else if (payload.equals(drainPing)) this.finishDrain();
  }

  #violate(code: number, reason: string): void {
    this.#host.onViolation(code, reason, this.peer);
    this.#fail(code, reason);
  }

  /** Ends the connection with GOAWAY. */
  #fail(code: number, reason: string): void {
    this.#goneAway = true;
    const payload = Buffer.alloc(8 + Buffer.byteLength(reason));
    payload.writeUInt32BE(this.#streams.lastId, 0);
    payload.writeUInt32BE(code, 4);
    payload.write(reason, 8);
    this.#output.append(frame(FrameType.GOAWAY, 0, 0, payload));
    this.#streams.abort();
    this.#account.set(0);
    this.#end();
  }

  /** Flushes the output and closes. */
  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#output.flush();
    this.#socket.end();
    setTimeout(() => this.#socket.destroy(), closeGraceMs).unref();
    // Otherwise the end of the client's side is not noticed.
    this.#socket.resume();
  }

  #onClose(): void {
    this.#closed = true;
    this.#streams.abort();
    this.#account.close();
  }
}

/** Frees memory that would otherwise wait for a garbage collection. */
function free({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

const drainPing = Buffer.from('tg-drain');
const keepalivePing = Buffer.from('tg-alive');
