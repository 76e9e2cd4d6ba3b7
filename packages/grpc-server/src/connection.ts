import type { Socket } from 'node:net';
import { type Methods, type Peer, Stream } from './call.ts';
import { type CallTarget, callHandler } from './call-handler.ts';
import { PrefaceReader, ReceiveWindow, ResetStreams, StallDetector } from './connection-state.ts';
import {
  expectConnection,
  expectLength,
  expectStream,
  readSettings,
  unpadData,
  unpadHeaders,
} from './frame-payload.ts';
import {
  ConnectionError,
  defaultWindowBytes,
  ErrorCode,
  Flag,
  FrameReader,
  FrameType,
  frame,
  maxFrameBytes,
  maxWindowBytes,
  numberFrame,
  Setting,
  settingsFrame,
} from './frames.ts';
import { HeaderBlocks } from './header-blocks.ts';
import { headerTableBytes } from './hpack/decoder.ts';
import type { Limits } from './limits.ts';
import { Budget } from './limits.ts';
import type { FlushQueue } from './output.ts';
import { Output } from './output.ts';
import { findRefusal, type Refusal } from './refusal.ts';
import { Replies } from './replies.ts';
import { messagePrefixBytes } from './reply.ts';
import { oversizedHead, type RequestHead, trailerProblem } from './request-head.ts';
import { readRequestMessage, tooLarge } from './request-message.ts';
import { Code, GrpcStatus } from './status.ts';

/** Shared by all connections of a server. */
export interface ConnectionHost {
  readonly limits: Limits;
  readonly methods: Methods;
  readonly flushQueue: FlushQueue;
  /** Converts an error that a handler threw. */
  readonly toStatus: (error: unknown, path: string) => GrpcStatus;
  /** Why a peer is refused; undefined when it is accepted. */
  readonly refusal: (peer: Peer) => string | undefined;
  /** Called with the GOAWAY code and reason when a client violates the protocol. */
  readonly onViolation: (code: number, reason: string, peer: Peer) => void;
  /** Called with an unexpected error, which ends one connection. */
  readonly onInternalError: (error: unknown) => void;
}

/** Time for a client to close its side after ours. */
const closeGraceMs = 250;

/** One HTTP/2 connection: its streams and their states (RFC 9113 §5). */
export class Connection {
  readonly peer: Peer;
  readonly openedMs: number;
  /** When the last bytes arrived; `performance.now()`. */
  activeMs: number;
  readonly #socket: Socket;
  readonly #host: ConnectionHost;
  readonly #output: Output;
  readonly #replies: Replies;
  readonly #reader = new FrameReader();
  readonly #blocks: HeaderBlocks;
  readonly #callTarget: CallTarget;
  readonly #overhead: Budget;
  readonly #streams = new Map<number, Stream>();
  readonly #resets = new ResetStreams();
  readonly #preface = new PrefaceReader();
  readonly #receiveWindow: ReceiveWindow;
  readonly #stalls: StallDetector;
  readonly #refusal: string | undefined;
  #settingsReceived: boolean = false;
  #lastStreamId = 0;
  #goneAway: boolean = false;
  #draining: boolean = false;
  #closed: boolean = false;

  constructor(socket: Socket, host: ConnectionHost, peer: Peer) {
    this.#socket = socket;
    this.#host = host;
    this.peer = peer;
    this.openedMs = performance.now();
    this.activeMs = this.openedMs;
    this.#refusal = host.refusal(peer);
    this.#blocks = new HeaderBlocks(host.limits);
    const { overheadBurst, overheadPerSecond } = host.limits;
    this.#overhead = new Budget(overheadBurst, overheadPerSecond, this.openedMs);
    this.#output = new Output(socket, () => host.flushQueue.add(this.#output));
    this.#replies = new Replies(this.#output, (stream) => this.#finish(stream));
    this.#callTarget = { host, replies: this.#replies, reply: this.#reply };
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('drain', () => this.#resume());
    socket.once('close', () => this.#onClose());
    const { maxConcurrentStreams, maxHeaderListBytes, maxMessageBytes, connectionWindowBytes } = host.limits;
    this.#receiveWindow = new ReceiveWindow(connectionWindowBytes);
    this.#stalls = new StallDetector(socket, host.limits.writeStallTimeoutMs);
    this.#output.append(
      settingsFrame([
        [Setting.MAX_CONCURRENT_STREAMS, maxConcurrentStreams],
        [Setting.INITIAL_WINDOW_SIZE, Math.max(defaultWindowBytes, maxMessageBytes + maxFrameBytes)],
        [Setting.MAX_HEADER_LIST_SIZE, maxHeaderListBytes],
        [Setting.HEADER_TABLE_SIZE, headerTableBytes],
      ]),
    );
    const extra = connectionWindowBytes - defaultWindowBytes;
    if (extra > 0) this.#output.append(numberFrame(FrameType.WINDOW_UPDATE, 0, extra));
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
    return this.#lastStreamId > 0;
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
    this.#output.append(numberFrame(FrameType.GOAWAY, 0, this.#lastStreamId, ErrorCode.NO_ERROR));
    // Long-lived streams: their clients reopen them elsewhere.
    const ok = new GrpcStatus(Code.OK, '');
    for (const stream of this.#streams.values()) if (stream.streaming) this.#replies.end(stream, ok);
    this.#closeWhenIdle();
  }

  /** Sends a PING; its acknowledgement counts as activity. */
  ping(): void {
    this.#output.append(frame(FrameType.PING, 0, 0, keepalivePing));
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Enforces timeouts: of calls, of incomplete requests, and of clients that do not read. */
  sweep(nowMs: number): void {
    const { requestTimeoutMs } = this.#host.limits;
    for (const stream of this.#streams.values()) {
      if (nowMs >= stream.deadlineMs && stream.lastBlock === undefined) {
        stream.abort();
        this.#replies.end(stream, new GrpcStatus(Code.DEADLINE_EXCEEDED, 'deadline exceeded'));
      } else if (!stream.remoteClosed && nowMs - stream.startedMs > requestTimeoutMs) {
        this.#reset(stream, ErrorCode.CANCEL);
      }
    }
    if (this.#stalls.isStalled(nowMs, this.#replies.blocked)) this.destroy();
  }

  #onData(chunk: Buffer): void {
    this.activeMs = performance.now();
    if (this.#closed) return;
    try {
      let rest = chunk;
      if (!this.#preface.done) {
        rest = this.#preface.read(chunk);
        if (rest.length === 0) return;
      }
      this.#reader.read(rest, this.#onFrame);
    } catch (error) {
      if (error instanceof ConnectionError) {
        this.#host.onViolation(error.code, error.message, this.peer);
        this.#fail(error.code, error.message);
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
    if (this.#blocks.open && (type !== FrameType.CONTINUATION || streamId !== this.#blocks.streamId)) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'header block is interrupted by another frame');
    }
    switch (type) {
      case FrameType.HEADERS:
        this.#onHeaders(flags, streamId, payload);
        return;
      case FrameType.CONTINUATION:
        if (this.#blocks.addContinuation(payload, (flags & Flag.END_HEADERS) !== 0)) this.#onBlock();
        return;
      case FrameType.DATA:
        this.#onDataFrame(flags, streamId, payload);
        return;
      default:
        this.#spendOverhead();
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
        this.#onWindowUpdate(streamId, payload);
        return;
      case FrameType.RST_STREAM:
        this.#onResetFrame(streamId, payload);
        return;
      case FrameType.PRIORITY:
        this.#onPriority(streamId, payload);
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

  #onHeaders(flags: number, streamId: number, payload: Buffer): void {
    expectStream(streamId, 'HEADERS');
    const { fragment, dependency } = unpadHeaders(flags, payload);
    this.#blocks.begin(streamId, fragment, {
      endStream: (flags & Flag.END_STREAM) !== 0,
      selfDependent: dependency === streamId,
    });
    if ((flags & Flag.END_HEADERS) !== 0) this.#onBlock();
  }

  /** Handles a complete header block. */
  #onBlock(): void {
    const { streamId, endStream, selfDependent } = this.#blocks;
    const stream = this.#streams.get(streamId);
    const isNew = stream === undefined && streamId > this.#lastStreamId;
    if (isNew && streamId % 2 === 0) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'stream identifier of a client is even');
    }
    // Decoded in any case: the HPACK state belongs to the connection.
    if (stream !== undefined) {
      this.#onTrailers(stream, endStream);
    } else if (isNew) {
      this.#lastStreamId = streamId;
      const head = this.#blocks.readRequest();
      if (selfDependent) this.#resetId(streamId, ErrorCode.PROTOCOL_ERROR);
      else this.#onRequest(streamId, head, endStream);
    } else {
      this.#blocks.readFields();
      if (!this.#resets.has(streamId)) {
        throw new ConnectionError(ErrorCode.STREAM_CLOSED, 'HEADERS on a closed stream');
      }
    }
  }

  #onRequest(streamId: number, head: RequestHead | string | undefined, endStream: boolean): void {
    if (this.#goneAway || this.#streams.size >= this.#host.limits.maxConcurrentStreams) {
      this.#spendOverhead();
      this.#resetId(streamId, ErrorCode.REFUSED_STREAM);
      return;
    }
    if (typeof head === 'string') {
      this.#spendOverhead();
      this.#resetId(streamId, ErrorCode.PROTOCOL_ERROR);
      return;
    }
    const stream = new Stream(streamId, head ?? oversizedHead, {
      peer: this.peer,
      nowMs: this.activeMs,
      sendWindow: this.#replies.initialWindow,
    });
    stream.remoteClosed = endStream;
    this.#streams.set(streamId, stream);
    stream.refusal = findRefusal(head, this.#host.methods, this.#refusal);
    if (endStream) this.#endRequest(stream);
  }

  #refuse(stream: Stream, refusal: Refusal): void {
    if (refusal instanceof GrpcStatus) this.#replies.end(stream, refusal);
    else this.#replies.endPlain(stream, refusal);
  }

  #onTrailers(stream: Stream, endStream: boolean): void {
    const fields = this.#blocks.readFields();
    if (stream.remoteClosed) {
      this.#reset(stream, ErrorCode.STREAM_CLOSED);
    } else if (!endStream || fields === undefined || trailerProblem(fields) !== undefined) {
      this.#reset(stream, ErrorCode.PROTOCOL_ERROR);
    } else this.#endRequest(stream);
  }

  #onDataFrame(flags: number, streamId: number, payload: Buffer): void {
    expectStream(streamId, 'DATA');
    if (streamId > this.#lastStreamId) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'DATA on an idle stream');
    }
    const stream = this.#streams.get(streamId);
    const data = unpadData(flags, payload);
    const endStream = (flags & Flag.END_STREAM) !== 0;
    const released = this.#receiveWindow.receive(payload.length, this.#streams.values());
    if (released > 0) this.#output.append(numberFrame(FrameType.WINDOW_UPDATE, 0, released));
    if (stream === undefined || stream.remoteClosed) {
      if (stream === undefined && this.#resets.has(streamId)) this.#spendOverhead();
      else if (stream === undefined) this.#resetId(streamId, ErrorCode.STREAM_CLOSED);
      else this.#reset(stream, ErrorCode.STREAM_CLOSED);
      return;
    }
    if (data.length === 0 && !endStream) this.#spendOverhead();
    // The reply was early: the rest of the request is ignored.
    if (stream.lastBlock !== undefined) {
      stream.remoteClosed = endStream;
      return;
    }
    stream.addBody(data);
    const { maxMessageBytes } = this.#host.limits;
    // Replied at once: the client would wait for a larger window, which it does not get.
    const isTooLarge =
      Math.max(stream.announcedBytes ?? 0, stream.bodyBytes - messagePrefixBytes) > maxMessageBytes;
    if (isTooLarge && stream.refusal === undefined) this.#replies.end(stream, tooLarge(maxMessageBytes));
    else if (stream.bodyBytes > maxMessageBytes + messagePrefixBytes) this.#reset(stream, ErrorCode.CANCEL);
    else if (endStream) this.#endRequest(stream);
  }

  #endRequest(stream: Stream): void {
    stream.remoteClosed = true;
    if (stream.lastBlock !== undefined) return;
    const { contentLength } = stream.head;
    if (contentLength !== undefined && contentLength !== stream.bodyBytes) {
      this.#reset(stream, ErrorCode.PROTOCOL_ERROR);
    } else if (stream.refusal !== undefined) this.#refuse(stream, stream.refusal);
    else this.#dispatch(stream);
  }

  #dispatch(stream: Stream): void {
    const { encoding } = stream.head;
    const { maxMessageBytes, overheadPerCall } = this.#host.limits;
    const message = readRequestMessage(stream.takeBody(), { encoding, maxBytes: maxMessageBytes });
    if (message instanceof GrpcStatus) {
      this.#replies.end(stream, message);
      return;
    }
    this.#overhead.add(overheadPerCall);
    callHandler(stream, message, this.#callTarget);
  }

  readonly #reply = (stream: Stream, reply: Uint8Array | GrpcStatus): void => {
    // Cancelled, timed out or lost meanwhile.
    if (this.#streams.get(stream.id) !== stream || stream.lastBlock !== undefined) return;
    if (reply instanceof GrpcStatus) this.#replies.end(stream, reply);
    else this.#replies.unary(stream, reply);
  };

  /** Called when the last frame of a stream was written. */
  #finish(stream: Stream): void {
    this.#streams.delete(stream.id);
    stream.abort();
    // RFC 9113 §8.1: a reply before the end of the request asks the client to stop sending it.
    if (!stream.remoteClosed) this.#resetId(stream.id, ErrorCode.NO_ERROR);
    if (this.#goneAway) this.#closeWhenIdle();
  }

  #reset(stream: Stream, code: number): void {
    this.#streams.delete(stream.id);
    this.#replies.drop(stream);
    stream.abort();
    this.#resetId(stream.id, code);
    if (this.#goneAway) this.#closeWhenIdle();
  }

  #resetId(streamId: number, code: number): void {
    this.#output.append(numberFrame(FrameType.RST_STREAM, streamId, code));
    this.#resets.add(streamId);
  }

  #onResetFrame(streamId: number, payload: Buffer): void {
    expectStream(streamId, 'RST_STREAM');
    expectLength(payload, 4, 'RST_STREAM');
    if (streamId > this.#lastStreamId) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'RST_STREAM on an idle stream');
    }
    // The client sends no more frames on it.
    this.#resets.delete(streamId);
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return;
    this.#streams.delete(streamId);
    this.#replies.drop(stream);
    stream.abort();
    if (this.#goneAway) this.#closeWhenIdle();
  }

  /** Priorities are not used, but must be valid (RFC 7540 §6.3). */
  #onPriority(streamId: number, payload: Buffer): void {
    expectStream(streamId, 'PRIORITY');
    if (payload.length === 5 && (payload.readUInt32BE() & maxWindowBytes) !== streamId) return;
    const code = payload.length === 5 ? ErrorCode.PROTOCOL_ERROR : ErrorCode.FRAME_SIZE_ERROR;
    // RFC 9113 §5.1: RST_STREAM is not allowed on an idle stream.
    if (streamId > this.#lastStreamId) throw new ConnectionError(code, 'malformed PRIORITY');
    const stream = this.#streams.get(streamId);
    if (stream === undefined) this.#resetId(streamId, code);
    else this.#reset(stream, code);
  }

  #onSettings(flags: number, streamId: number, payload: Buffer): void {
    expectConnection(streamId, 'SETTINGS');
    if ((flags & Flag.ACK) !== 0) {
      expectLength(payload, 0, 'acknowledged SETTINGS');
      return;
    }
    for (const [id, value] of readSettings(payload)) {
      if (id !== Setting.INITIAL_WINDOW_SIZE) continue;
      if (!this.#replies.setInitialWindow(value, this.#streams.values())) {
        throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'window of a stream overflows');
      }
    }
    this.#settingsReceived = true;
    this.#output.append(frame(FrameType.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)));
    // After the acknowledgement: what follows it is sent under the new settings.
    this.#replies.resume();
  }

  #onPing(flags: number, streamId: number, payload: Buffer): void {
    expectConnection(streamId, 'PING');
    expectLength(payload, 8, 'PING');
    if ((flags & Flag.ACK) === 0) this.#output.append(frame(FrameType.PING, Flag.ACK, 0, payload));
    else if (payload.equals(drainPing)) this.finishDrain();
  }

  #onWindowUpdate(streamId: number, payload: Buffer): void {
    expectLength(payload, 4, 'WINDOW_UPDATE');
    const increment = payload.readUInt32BE() & maxWindowBytes;
    if (streamId > this.#lastStreamId) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'WINDOW_UPDATE on an idle stream');
    }
    if (streamId === 0) {
      if (increment === 0) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'WINDOW_UPDATE of 0');
      if (!this.#replies.addConnectionWindow(increment)) {
        throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'window of the connection overflows');
      }
      return;
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return;
    if (increment === 0) this.#reset(stream, ErrorCode.PROTOCOL_ERROR);
    else if (!this.#replies.addWindow(stream, increment)) this.#reset(stream, ErrorCode.FLOW_CONTROL_ERROR);
  }

  /** Counts a frame without progress. */
  #spendOverhead(): void {
    if (!this.#overhead.take(this.activeMs)) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'too many frames without a request');
    }
  }

  /** Ends the connection with GOAWAY. */
  #fail(code: number, reason: string): void {
    this.#goneAway = true;
    const payload = Buffer.alloc(8 + Buffer.byteLength(reason));
    payload.writeUInt32BE(this.#lastStreamId, 0);
    payload.writeUInt32BE(code, 4);
    payload.write(reason, 8);
    this.#output.append(frame(FrameType.GOAWAY, 0, 0, payload));
    this.#abortStreams();
    this.#end();
  }

  #closeWhenIdle(): void {
    if (this.#streams.size === 0) this.#end();
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
    this.#abortStreams();
  }

  #abortStreams(): void {
    for (const stream of this.#streams.values()) {
      this.#replies.drop(stream);
      stream.abort();
    }
    this.#streams.clear();
  }
}

const drainPing = Buffer.from('tg-drain');
const keepalivePing = Buffer.from('tg-alive');
