import type { Socket } from 'node:net';
import { Budget } from './budget.ts';
import { type Methods, type Peer, Stream } from './call.ts';
import { expectConnection, expectLength, expectStream, unpadData, unpadHeaders } from './frame-payload.ts';
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
  preface,
  Setting,
  settingsFrame,
} from './frames.ts';
import { HeaderBlocks } from './header-blocks.ts';
import { headerTableBytes } from './hpack/decoder.ts';
import type { Limits } from './limits.ts';
import type { FlushQueue } from './output.ts';
import { Output } from './output.ts';
import { findRefusal, type Refusal } from './refusal.ts';
import { Replies } from './replies.ts';
import { messagePrefixBytes } from './reply.ts';
import { type RequestHead, trailerProblem } from './request-head.ts';
import { readRequestMessage, tooLarge } from './request-message.ts';
import { Code, GrpcStatus } from './status.ts';

/** What all connections of a server share. */
export interface ConnectionHost {
  readonly limits: Limits;
  readonly methods: Methods;
  readonly flushQueue: FlushQueue;
  /** The status of an error that a handler threw. */
  readonly toStatus: (error: unknown, path: string) => GrpcStatus;
  /** Why this peer may not call; undefined when it may. */
  readonly refusal: (peer: Peer) => string | undefined;
  /** Called with the GOAWAY code and reason when a connection is ended because of its client. */
  readonly onViolation: (code: number, reason: string, peer: Peer) => void;
  /** Called with an unexpected error, which ended one connection. */
  readonly onInternalError: (error: unknown) => void;
}

/** How many streams that we reset are remembered, because frames of theirs may be under way. */
const rememberedResets = 1000;

/** A socket that was ended is destroyed after that time, whether or not its client has closed its side. */
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
  readonly #overhead: Budget;
  readonly #streams = new Map<number, Stream>();
  readonly #resets = new Set<number>();
  readonly #refusal: string | undefined;
  #prefaceBytes = 0;
  #settingsReceived: boolean = false;
  #lastStreamId = 0;
  /** Received bytes for which the client has not got its window back. */
  #unacknowledgedBytes = 0;
  #goneAway: boolean = false;
  #draining: boolean = false;
  #closed: boolean = false;
  #pausedMs: number | undefined;
  #bytesWrittenAtPause = 0;

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
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('drain', () => this.#resume());
    socket.once('close', () => this.#onClose());
    const { maxConcurrentStreams, maxHeaderListBytes, maxMessageBytes, connectionWindowBytes } = host.limits;
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

  /** Lets the calls in flight end, takes no new ones, and closes. */
  drain(): void {
    if (this.#draining || this.#goneAway) return;
    this.#draining = true;
    if (!this.#settingsReceived) {
      this.destroy();
      return;
    }
    // RFC 9113 §6.8: requests under way are not lost, because the last identifier is announced after a round trip.
    this.#output.append(numberFrame(FrameType.GOAWAY, 0, maxWindowBytes, ErrorCode.NO_ERROR));
    this.#output.append(frame(FrameType.PING, 0, 0, drainPing));
  }

  /** Ends the second phase of a drain: no further stream is taken. */
  finishDrain(): void {
    if (this.#goneAway || !this.#draining) return;
    this.#goneAway = true;
    this.#output.append(numberFrame(FrameType.GOAWAY, 0, this.#lastStreamId, ErrorCode.NO_ERROR));
    // They would go on for ever; their clients open them again elsewhere.
    const ok = new GrpcStatus(Code.OK, '');
    for (const stream of this.#streams.values()) if (stream.streaming) this.#replies.end(stream, ok);
    this.#closeWhenIdle();
  }

  /** Sends a PING; the answer counts as activity. */
  ping(): void {
    this.#output.append(frame(FrameType.PING, 0, 0, keepalivePing));
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Ends what has taken too long: calls past their deadline, requests that do not arrive, readers that do not read. */
  sweep(nowMs: number): void {
    const { requestTimeoutMs, writeStallTimeoutMs } = this.#host.limits;
    for (const stream of this.#streams.values()) {
      if (nowMs >= stream.deadlineMs && stream.lastBlock === undefined) {
        stream.abort();
        this.#replies.end(stream, new GrpcStatus(Code.DEADLINE_EXCEEDED, 'deadline exceeded'));
      } else if (!stream.remoteClosed && nowMs - stream.startedMs > requestTimeoutMs) {
        this.#reset(stream, ErrorCode.CANCEL);
      }
    }
    if (this.#pausedMs === undefined) {
      if (this.#socket.writableLength > 0 || this.#replies.blocked) this.#watchReader(nowMs);
    } else if (this.#socket.bytesWritten !== this.#bytesWrittenAtPause) this.#watchReader(nowMs);
    else if (this.#socket.writableLength === 0 && !this.#replies.blocked) this.#pausedMs = undefined;
    else if (nowMs - this.#pausedMs > writeStallTimeoutMs) this.destroy();
  }

  #watchReader(nowMs: number): void {
    this.#pausedMs = nowMs;
    this.#bytesWrittenAtPause = this.#socket.bytesWritten;
  }

  #onData(chunk: Buffer): void {
    this.activeMs = performance.now();
    if (this.#closed) return;
    try {
      let rest = chunk;
      if (this.#prefaceBytes < preface.length) {
        rest = this.#readPreface(chunk);
        if (rest.length === 0) return;
      }
      this.#reader.read(rest, this.#onFrame);
    } catch (error) {
      if (error instanceof ConnectionError) {
        this.#host.onViolation(error.code, error.message, this.peer);
        this.#fail(error.code, error.message);
      } else {
        // A mistake of ours costs this connection, not the process.
        this.#host.onInternalError(error);
        this.#fail(ErrorCode.INTERNAL_ERROR, 'internal error');
      }
    }
    // Replies that the client does not read would grow without a bound. 'drain' follows.
    if (this.#socket.writableLength > this.#host.limits.maxWriteBufferBytes) this.#socket.pause();
  }

  #resume(): void {
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  #readPreface(chunk: Buffer): Buffer {
    const wanted = preface.subarray(this.#prefaceBytes);
    const got = chunk.subarray(0, wanted.length);
    if (!got.equals(wanted.subarray(0, got.length))) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'not an HTTP/2 connection preface');
    }
    this.#prefaceBytes += got.length;
    return chunk.subarray(got.length);
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
        expectStream(streamId, 'PRIORITY');
        if (payload.length !== 5) this.#resetId(streamId, ErrorCode.FRAME_SIZE_ERROR);
        else if ((payload.readUInt32BE() & maxWindowBytes) === streamId) {
          this.#resetId(streamId, ErrorCode.PROTOCOL_ERROR);
        }
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

  /** A whole header block has arrived. */
  #onBlock(): void {
    const { streamId, endStream, selfDependent } = this.#blocks;
    const stream = this.#streams.get(streamId);
    const isNew = stream === undefined && streamId > this.#lastStreamId;
    if (isNew && streamId % 2 === 0) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'stream identifier of a client is even');
    }
    // Decoded in any case: the state of HPACK is that of the connection.
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
    this.#receive(payload.length);
    if (stream === undefined || stream.remoteClosed) {
      if (stream === undefined && this.#resets.has(streamId)) this.#spendOverhead();
      else if (stream === undefined) this.#resetId(streamId, ErrorCode.STREAM_CLOSED);
      else this.#reset(stream, ErrorCode.STREAM_CLOSED);
      return;
    }
    if (data.length === 0 && !endStream) this.#spendOverhead();
    // A stream that was answered early takes no more.
    if (stream.lastBlock !== undefined) {
      stream.remoteClosed = endStream;
      return;
    }
    stream.addBody(data);
    const { maxMessageBytes } = this.#host.limits;
    // Answered at once: its client would wait for a larger window, which it does not get.
    const isTooLarge =
      Math.max(stream.announcedBytes ?? 0, stream.bodyBytes - messagePrefixBytes) > maxMessageBytes;
    if (isTooLarge && stream.refusal === undefined) this.#replies.end(stream, tooLarge(maxMessageBytes));
    else if (stream.bodyBytes > maxMessageBytes + messagePrefixBytes) this.#reset(stream, ErrorCode.CANCEL);
    else if (endStream) this.#endRequest(stream);
  }

  /** Gives the client back its window on the connection, half of it at a time. */
  #receive(bytes: number): void {
    this.#unacknowledgedBytes += bytes;
    if (this.#unacknowledgedBytes > this.#host.limits.connectionWindowBytes) {
      throw new ConnectionError(
        ErrorCode.FLOW_CONTROL_ERROR,
        'the client exceeds the window of the connection',
      );
    }
    let incomplete = 0;
    if (this.#unacknowledgedBytes < this.#host.limits.connectionWindowBytes / 2) return;
    // Bytes of requests that are not complete stay counted: the window bounds what one client makes us hold.
    for (const stream of this.#streams.values()) if (!stream.remoteClosed) incomplete += stream.bodyBytes;
    const released = this.#unacknowledgedBytes - Math.min(incomplete, this.#unacknowledgedBytes);
    if (released === 0) return;
    this.#unacknowledgedBytes -= released;
    this.#output.append(numberFrame(FrameType.WINDOW_UPDATE, 0, released));
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
    const maxBytes = this.#host.limits.maxMessageBytes;
    const message = readRequestMessage(stream.takeBody(), { encoding, maxBytes });
    if (message instanceof GrpcStatus) {
      this.#replies.end(stream, message);
      return;
    }
    this.#overhead.add(this.#host.limits.overheadPerCall);
    const { unary, streaming } = this.#host.methods;
    const handler = unary[stream.path];
    try {
      if (handler === undefined) {
        stream.streaming = true;
        streaming?.[stream.path]?.(message, this.#replies.open(stream), stream);
        return;
      }
      const reply = handler(message, stream);
      if (reply instanceof Promise) reply.then(this.#settle(stream), this.#settleError(stream));
      else this.#reply(stream, reply);
    } catch (error) {
      this.#settleError(stream)(error);
    }
  }

  #settle(stream: Stream): (reply: Uint8Array | GrpcStatus) => void {
    return (reply) => this.#reply(stream, reply);
  }

  #settleError(stream: Stream): (error: unknown) => void {
    return (error) => this.#reply(stream, this.#host.toStatus(error, stream.path));
  }

  #reply(stream: Stream, reply: Uint8Array | GrpcStatus): void {
    // Cancelled, timed out or lost in the meantime.
    if (this.#streams.get(stream.id) !== stream || stream.lastBlock !== undefined) return;
    if (reply instanceof GrpcStatus) this.#replies.end(stream, reply);
    else this.#replies.unary(stream, reply);
  }

  /** The last frame of a stream has been written. */
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
    if (this.#resets.size > rememberedResets) {
      for (const oldest of this.#resets) {
        this.#resets.delete(oldest);
        break;
      }
    }
  }

  #onResetFrame(streamId: number, payload: Buffer): void {
    expectStream(streamId, 'RST_STREAM');
    expectLength(payload, 4, 'RST_STREAM');
    if (streamId > this.#lastStreamId) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'RST_STREAM on an idle stream');
    }
    // The client sends nothing more on it.
    this.#resets.delete(streamId);
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return;
    this.#streams.delete(streamId);
    this.#replies.drop(stream);
    stream.abort();
    if (this.#goneAway) this.#closeWhenIdle();
  }

  #onSettings(flags: number, streamId: number, payload: Buffer): void {
    expectConnection(streamId, 'SETTINGS');
    if ((flags & Flag.ACK) !== 0) {
      expectLength(payload, 0, 'acknowledged SETTINGS');
      return;
    }
    if (payload.length % 6 !== 0) {
      throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, `SETTINGS of ${payload.length} bytes`);
    }
    for (let at = 0; at < payload.length; at += 6) {
      this.#onSetting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    }
    this.#settingsReceived = true;
    this.#output.append(frame(FrameType.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)));
    // After the acknowledgement: what follows it is sent under the new settings.
    this.#replies.resume();
  }

  #onSetting(id: number, value: number): void {
    if (id === Setting.ENABLE_PUSH && value > 1) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, `ENABLE_PUSH of ${value}`);
    }
    if (id === Setting.MAX_FRAME_SIZE && (value < maxFrameBytes || value > 0xff_ffff)) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, `MAX_FRAME_SIZE of ${value}`);
    }
    if (id === Setting.INITIAL_WINDOW_SIZE) {
      if (value > maxWindowBytes) {
        throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, `INITIAL_WINDOW_SIZE of ${value}`);
      }
      if (!this.#replies.setInitialWindow(value, this.#streams.values())) {
        throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'window of a stream overflows');
      }
    }
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

  /** Counts a frame that makes no progress. */
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

  /** Sends what is left and closes. */
  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#output.flush();
    this.#socket.end();
    setTimeout(() => this.#socket.destroy(), closeGraceMs).unref();
    // Otherwise the end of the client's side is never seen.
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

/** Stands for a header list that was too large to be kept. */
const oversizedHead: RequestHead = {
  method: '',
  path: '',
  contentType: '',
  encoding: 'identity',
  timeoutMs: Number.POSITIVE_INFINITY,
  contentLength: undefined,
  fields: [],
};
