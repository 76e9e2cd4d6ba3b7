import { type CallTarget, callHandler, type Methods, type Peer, Stream } from './call.ts';
import { connectionWindowBytes, ReceiveWindow } from './connection-state.ts';
import {
  ConnectionError,
  defaultWindowBytes,
  ErrorCode,
  expectLength,
  expectStream,
  Flag,
  FrameType,
  maxWindowBytes,
  numberFrame,
  unpadData,
  unpadHeaders,
} from './frames.ts';
import { HeaderBlocks } from './header-blocks.ts';
import { Budget, type Limits } from './limits.ts';
import type { Output } from './output.ts';
import { Replies } from './replies.ts';
import {
  findRefusal,
  messagePrefixBytes,
  oversizedHead,
  type Refusal,
  type RequestHead,
  readRequestMessage,
  tooLarge,
  trailerProblem,
} from './request.ts';
import { Code, GrpcStatus } from './status.ts';
import { StreamTable } from './stream-table.ts';

/** The server, as the calls of a connection need it. */
export interface CallHost {
  readonly limits: Limits;
  readonly methods: Methods;
  /** Converts an error that a handler threw. */
  readonly toStatus: (error: unknown, path: string) => GrpcStatus;
  /** Why a peer is refused; undefined when it is accepted. */
  readonly refusal: (peer: Peer) => string | undefined;
}

interface StreamsOptions {
  readonly peer: Peer;
  readonly output: Output;
  /** Called at the end of the last stream once `closing` is set. */
  readonly onLastEnd: () => void;
}

const tooManyIncomplete = new GrpcStatus(
  Code.RESOURCE_EXHAUSTED,
  'incomplete requests take too much memory, retry later',
);

/** Frames of a stream that we reset may still be on the wire: this many streams are remembered. */
const maxResets = 1000;

/** The streams of a connection and their states (RFC 9113 §5), from request to reply. */
export class Streams {
  readonly #host: CallHost;
  readonly #peer: Peer;
  readonly #output: Output;
  readonly #onLastEnd: () => void;
  readonly #refusal: string | undefined;
  readonly #open = new StreamTable<Stream>();
  /** Streams that have ended before their handlers returned. */
  readonly #abandoned = new Set<Stream>();
  /** Streams that were reset by us, the most recent ones. */
  readonly #resets = new Set<number>();
  readonly #blocks: HeaderBlocks;
  readonly #overhead: Budget;
  readonly #receiveWindow = new ReceiveWindow(connectionWindowBytes);
  /** Memory of requests whose end has not arrived. */
  #incompleteBytes = 0;
  readonly replies: Replies;
  readonly #callTarget: CallTarget;
  /** When the frame that is handled has arrived; `performance.now()`. */
  nowMs: number;
  /** The largest identifier that the client has used; others are idle. */
  lastId = 0;
  /** No further streams are accepted. */
  closing: boolean = false;

  constructor(host: CallHost, { peer, output, onLastEnd }: StreamsOptions) {
    const { limits } = host;
    this.#host = host;
    this.#peer = peer;
    this.#output = output;
    this.#onLastEnd = onLastEnd;
    this.#refusal = host.refusal(peer);
    this.#blocks = new HeaderBlocks(limits);
    this.nowMs = performance.now();
    this.#overhead = new Budget(limits.overheadBurst, limits.overheadPerSecond, this.nowMs);
    this.replies = new Replies(output, (stream) => this.#finish(stream));
    this.#callTarget = { host, replies: this.replies, reply: this.#reply };
  }

  /** Streams that are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Memory of requests that have not arrived completely. */
  get heldBytes(): number {
    return this.#incompleteBytes + this.#blocks.heldBytes;
  }

  /** Passes the frames of a header block on; others must not interrupt it. */
  expectBlock(type: number, streamId: number): void {
    if (this.#blocks.open && (type !== FrameType.CONTINUATION || streamId !== this.#blocks.streamId)) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'header block is interrupted by another frame');
    }
  }

  /** Counts a frame without progress. */
  spendOverhead(): void {
    if (!this.#overhead.take(this.nowMs)) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'too many frames without a request');
    }
  }

  onHeaders(flags: number, streamId: number, payload: Buffer): void {
    expectStream(streamId, 'HEADERS');
    const { fragment, dependency } = unpadHeaders(flags, payload);
    const isWhole = (flags & Flag.END_HEADERS) !== 0;
    // A fragment would keep all the bytes that arrived with it.
    this.#blocks.begin(streamId, isWhole ? fragment : Buffer.from(fragment), {
      endStream: (flags & Flag.END_STREAM) !== 0,
      selfDependent: dependency === streamId,
    });
    if (isWhole) this.#onBlock();
  }

  onContinuation(flags: number, payload: Buffer): void {
    const isLast = (flags & Flag.END_HEADERS) !== 0;
    if (this.#blocks.addContinuation(isLast ? payload : Buffer.from(payload), isLast)) this.#onBlock();
  }

  /** Handles a complete header block. */
  #onBlock(): void {
    const { streamId, endStream, selfDependent } = this.#blocks;
    const stream = this.#open.get(streamId);
    const isNew = stream === undefined && streamId > this.lastId;
    if (isNew && streamId % 2 === 0) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'stream identifier of a client is even');
    }
    // Decoded in any case: the HPACK state belongs to the connection.
    if (stream !== undefined) {
      this.#onTrailers(stream, endStream);
    } else if (isNew) {
      this.lastId = streamId;
      const head = this.#blocks.readRequest();
      this.#onRequest(streamId, selfDependent ? 'depends on itself' : head, endStream);
    } else {
      this.#blocks.readFields();
      this.spendOverhead();
      if (!this.#resets.has(streamId)) {
        throw new ConnectionError(ErrorCode.STREAM_CLOSED, 'HEADERS on a closed stream');
      }
    }
  }

  /** @param head a reason when the request is malformed, undefined when it is too large. */
  #onRequest(streamId: number, head: RequestHead | string | undefined, endStream: boolean): void {
    const { methods, limits } = this.#host;
    if (this.closing || this.#open.size + this.#abandoned.size >= limits.maxConcurrentStreams) {
      this.spendOverhead();
      this.#resetId(streamId, ErrorCode.REFUSED_STREAM);
      return;
    }
    if (typeof head === 'string') {
      this.spendOverhead();
      this.#resetId(streamId, ErrorCode.PROTOCOL_ERROR);
      return;
    }
    const stream = new Stream(streamId, head ?? oversizedHead, {
      peer: this.#peer,
      nowMs: this.nowMs,
      sendWindow: this.replies.initialWindow,
    });
    stream.remoteClosed = endStream;
    this.#open.add(stream);
    stream.refusal = findRefusal(head, methods, this.#refusal);
    if (endStream) this.#endRequest(stream);
    else this.#incompleteBytes += stream.heldBytes;
  }

  #onTrailers(stream: Stream, endStream: boolean): void {
    const fields = this.#blocks.readFields();
    const isValid = endStream && fields !== undefined && trailerProblem(fields) === undefined;
    if (isValid && !stream.remoteClosed) {
      this.#endRequest(stream);
      return;
    }
    this.spendOverhead();
    this.reset(stream, stream.remoteClosed ? ErrorCode.STREAM_CLOSED : ErrorCode.PROTOCOL_ERROR);
  }

  onData(flags: number, streamId: number, payload: Buffer): void {
    expectStream(streamId, 'DATA');
    this.#expectNotIdle(streamId, 'DATA');
    const stream = this.#open.get(streamId);
    const data = unpadData(flags, payload);
    const endStream = (flags & Flag.END_STREAM) !== 0;
    this.#replenish(this.#receiveWindow, 0, payload.length);
    if (stream === undefined || stream.remoteClosed) {
      this.spendOverhead();
      if (stream !== undefined) this.reset(stream, ErrorCode.STREAM_CLOSED);
      else if (!this.#resets.has(streamId)) this.#resetId(streamId, ErrorCode.STREAM_CLOSED);
      return;
    }
    if (data.length === 0 && !endStream) this.spendOverhead();
    if (stream.lastBlock !== undefined) {
      // The reply was early: the rest of the request is ignored.
      if (endStream) this.#closeRemote(stream);
      return;
    }
    if (!endStream) {
      stream.receiveWindow ??= new ReceiveWindow(defaultWindowBytes);
      this.#replenish(stream.receiveWindow, streamId, payload.length);
    }
    this.#addBody(stream, data, endStream);
  }

  #replenish(window: ReceiveWindow, streamId: number, bytes: number): void {
    const released = window.receive(bytes);
    if (released > 0) this.#output.append(numberFrame(FrameType.WINDOW_UPDATE, streamId, released));
  }

  #addBody(stream: Stream, data: Buffer, endStream: boolean): void {
    const before = stream.heldBytes;
    stream.addBody(data, endStream);
    this.#incompleteBytes += stream.heldBytes - before;
    const { maxMessageBytes } = this.#host.limits;
    // Replied at once: the client would wait for a larger window, which it does not get.
    const isTooLarge =
      Math.max(stream.announcedBytes ?? 0, stream.bodyBytes - messagePrefixBytes) > maxMessageBytes;
    if (isTooLarge && stream.refusal === undefined) this.replies.end(stream, tooLarge(maxMessageBytes));
    else if (stream.bodyBytes > maxMessageBytes + messagePrefixBytes) this.reset(stream, ErrorCode.CANCEL);
    else if (endStream) this.#endRequest(stream);
  }

  /** The client sends no more DATA of a stream. */
  #closeRemote(stream: Stream): void {
    if (!stream.remoteClosed) this.#incompleteBytes -= stream.heldBytes;
    stream.remoteClosed = true;
  }

  #endRequest(stream: Stream): void {
    this.#closeRemote(stream);
    if (stream.lastBlock !== undefined) return;
    const { contentLength } = stream.head;
    if (contentLength !== undefined && contentLength !== stream.bodyBytes) {
      this.reset(stream, ErrorCode.PROTOCOL_ERROR);
    } else if (stream.refusal !== undefined) this.#refuse(stream, stream.refusal);
    else this.#dispatch(stream);
  }

  #refuse(stream: Stream, refusal: Refusal): void {
    if (refusal instanceof GrpcStatus) this.replies.end(stream, refusal);
    else this.replies.endPlain(stream, refusal);
  }

  #dispatch(stream: Stream): void {
    const { encoding } = stream.head;
    const { maxMessageBytes, overheadPerCall } = this.#host.limits;
    const message = readRequestMessage(stream.takeBody(), { encoding, maxBytes: maxMessageBytes });
    if (message instanceof GrpcStatus) {
      this.replies.end(stream, message);
      return;
    }
    this.#overhead.add(overheadPerCall);
    callHandler(stream, message, this.#callTarget);
  }

  readonly #reply = (stream: Stream, reply: Uint8Array | GrpcStatus): void => {
    stream.running = false;
    this.#abandoned.delete(stream);
    // Cancelled, timed out or lost meanwhile.
    if (this.#open.get(stream.id) !== stream || stream.lastBlock !== undefined) return;
    if (reply instanceof GrpcStatus) this.replies.end(stream, reply);
    else this.replies.unary(stream, reply);
  };

  /** Called when the last frame of a stream was written. */
  #finish(stream: Stream): void {
    this.#remove(stream);
    // RFC 9113 §8.1: a reply before the end of the request asks the client to stop sending it.
    if (!stream.remoteClosed) this.#resetId(stream.id, ErrorCode.NO_ERROR);
    this.#closeWhenIdle();
  }

  reset(stream: Stream, code: number): void {
    this.#remove(stream);
    this.replies.drop(stream);
    this.#resetId(stream.id, code);
    this.#closeWhenIdle();
  }

  #closeWhenIdle(): void {
    if (this.closing && this.#open.size === 0) this.#onLastEnd();
  }

  #remove(stream: Stream): void {
    this.#open.delete(stream);
    if (!stream.remoteClosed) this.#incompleteBytes -= stream.heldBytes;
    stream.releaseBody();
    if (stream.running) this.#abandoned.add(stream);
    stream.abort();
  }

  #resetId(streamId: number, code: number): void {
    this.#output.append(numberFrame(FrameType.RST_STREAM, streamId, code));
    this.#resets.add(streamId);
    if (this.#resets.size <= maxResets) return;
    for (const oldest of this.#resets) {
      this.#resets.delete(oldest);
      break;
    }
  }

  onReset(streamId: number, payload: Buffer): void {
    expectStream(streamId, 'RST_STREAM');
    expectLength(payload, 4, 'RST_STREAM');
    this.#expectNotIdle(streamId, 'RST_STREAM');
    // The client sends no more frames on it.
    this.#resets.delete(streamId);
    const stream = this.#open.get(streamId);
    if (stream === undefined) return;
    this.#remove(stream);
    this.replies.drop(stream);
    this.#closeWhenIdle();
  }

  /** Priorities are not used, but must be valid (RFC 7540 §6.3). */
  onPriority(streamId: number, payload: Buffer): void {
    expectStream(streamId, 'PRIORITY');
    if (payload.length === 5 && (payload.readUInt32BE() & maxWindowBytes) !== streamId) return;
    const code = payload.length === 5 ? ErrorCode.PROTOCOL_ERROR : ErrorCode.FRAME_SIZE_ERROR;
    // RFC 9113 §5.1: RST_STREAM is not allowed on an idle stream.
    if (streamId > this.lastId) throw new ConnectionError(code, 'malformed PRIORITY');
    const stream = this.#open.get(streamId);
    if (stream === undefined) this.#resetId(streamId, code);
    else this.reset(stream, code);
  }

  onWindowUpdate(streamId: number, payload: Buffer): void {
    expectLength(payload, 4, 'WINDOW_UPDATE');
    const increment = payload.readUInt32BE() & maxWindowBytes;
    this.#expectNotIdle(streamId, 'WINDOW_UPDATE');
    if (streamId === 0) {
      if (increment === 0) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'WINDOW_UPDATE of 0');
      if (!this.replies.addConnectionWindow(increment)) {
        throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'window of the connection overflows');
      }
      return;
    }
    const stream = this.#open.get(streamId);
    if (stream === undefined) return;
    if (increment === 0) this.reset(stream, ErrorCode.PROTOCOL_ERROR);
    else if (!this.replies.addWindow(stream, increment)) this.reset(stream, ErrorCode.FLOW_CONTROL_ERROR);
  }

  setInitialWindow(bytes: number): void {
    if (!this.replies.setInitialWindow(bytes, this.#open.values())) {
      throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'window of a stream overflows');
    }
  }

  #expectNotIdle(streamId: number, what: string): void {
    if (streamId > this.lastId) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, `${what} on an idle stream`);
    }
  }

  /** Enforces the timeouts of calls and of incomplete requests. */
  sweep(nowMs: number): void {
    const { requestTimeoutMs } = this.#host.limits;
    for (const stream of this.#open.values()) {
      if (nowMs >= stream.deadlineMs && stream.lastBlock === undefined) {
        stream.abort();
        this.replies.end(stream, new GrpcStatus(Code.DEADLINE_EXCEEDED, 'deadline exceeded'));
      } else if (!stream.remoteClosed && nowMs - stream.startedMs > requestTimeoutMs) {
        this.reset(stream, ErrorCode.CANCEL);
      }
    }
  }

  /** Ends long-lived streams: their clients reopen them elsewhere. */
  endStreaming(): void {
    const ok = new GrpcStatus(Code.OK, '');
    for (const stream of this.#open.values()) if (stream.streaming) this.replies.end(stream, ok);
  }

  /** The incomplete request that holds the most, unless its reply has begun. */
  findLargestIncomplete(): Stream | undefined {
    let largest: Stream | undefined;
    for (const stream of this.#open.values()) {
      if (stream.remoteClosed || stream.lastBlock !== undefined) continue;
      if (largest === undefined || stream.heldBytes > largest.heldBytes) largest = stream;
    }
    return largest;
  }

  /** Ends a request that has not arrived completely: its client holds too much. */
  shed(stream: Stream): void {
    this.replies.end(stream, tooManyIncomplete);
  }

  /** Ends all calls without a reply. */
  abort(): void {
    for (const stream of this.#open.values()) {
      this.replies.drop(stream);
      stream.releaseBody();
      stream.abort();
    }
    this.#open.clear();
    this.#incompleteBytes = 0;
  }
}
