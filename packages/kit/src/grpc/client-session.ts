import type { Socket } from 'node:net';
import * as http2 from '@tollgate/grpc-server/frames';
import { HpackDecoder } from '@tollgate/grpc-server/hpack/decoder';
import { encodeHeaders } from '@tollgate/grpc-server/hpack/encoder';
import { FlushQueue, Output } from '@tollgate/grpc-server/output';
import { StreamTable } from '@tollgate/grpc-server/stream-table';

const { ConnectionError, ErrorCode, Flag, FrameType, frame, numberFrame, Setting } = http2;

/** A call of a session. */
export interface ClientCall {
  /** The response headers and trailers that gRPC needs, by their names. */
  readonly headers: Map<string, string>;
  readonly chunks: Buffer[];
  /** The server has ended the stream. */
  onEnd(): void;
  /** The stream was reset, or the connection is lost. */
  onReset(reason: { readonly refused: boolean; readonly message: string }): void;
}

interface SessionEvents {
  /** The first settings of the server, or an answer to a PING. */
  onAlive(): void;
  /** The server completes the calls in flight, and accepts no more. */
  onGoaway(): void;
  onClose(error: Error | undefined): void;
}

/** Stream window of replies, which also is their maximum. */
const replyWindowBytes = 1024 * 1024;
/** The window of the connection is extended after so many bytes. */
const extendAfterBytes = 2 ** 30;
const maxHeaderBytes = 16 * 1024;

const readHeaders: ReadonlySet<string> = new Set([':status', 'grpc-status', 'grpc-message']);

interface Pending {
  readonly call: ClientCall;
  readonly block: Buffer;
  readonly body: Buffer;
}

/**
 * Client side of one HTTP/2 connection for small unary calls. A message is sent as a whole once
 * it fits both windows, so that the windows of streams need no accounting.
 *
 * @see RFC 9113 https://www.rfc-editor.org/rfc/rfc9113
 */
export class ClientSession {
  readonly #socket: Socket;
  readonly #events: SessionEvents;
  readonly #output: Output;
  readonly #reader = new http2.FrameReader();
  readonly #decoder = new HpackDecoder(maxHeaderBytes);
  readonly #calls = new StreamTable<StartedCall>();
  readonly #blocks = new Map<string, Buffer>();
  /** Calls without a stream yet: the windows or the streams of the server are used up. */
  readonly #pending = new Set<Pending>();
  #nextStreamId = 1;
  #sendWindow = http2.defaultWindowBytes;
  #streamWindow = http2.defaultWindowBytes;
  /** Undefined until the server sends its settings: it would refuse streams above its limit. */
  #maxStreams: number | undefined;
  #received = 0;
  /** A header block that is not complete. */
  #block: { readonly streamId: number; readonly ends: boolean; readonly fragments: Buffer[] } | undefined;
  #error: Error | undefined;
  #closing: boolean = false;
  #reads = 0;
  #answered: boolean = false;

  constructor(socket: Socket, events: SessionEvents) {
    this.#socket = socket;
    this.#events = events;
    const queue = new FlushQueue();
    this.#output = new Output(socket, () => queue.add(this.#output));
    this.#output.append(http2.preface);
    this.#output.append(
      http2.settingsFrame([
        [Setting.ENABLE_PUSH, 0],
        [Setting.INITIAL_WINDOW_SIZE, replyWindowBytes],
      ]),
    );
    const more = http2.maxWindowBytes - http2.defaultWindowBytes;
    this.#output.append(numberFrame(FrameType.WINDOW_UPDATE, 0, more));
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', (error) => {
      this.#error ??= error;
    });
    socket.on('close', () => this.#onClose());
  }

  /** False once the server or we have ended it. */
  get isOpen(): boolean {
    return !this.#closing && !this.#socket.destroyed;
  }

  /** Counts what the server has sent. */
  get reads(): number {
    return this.#reads;
  }

  /** Whether the server has answered a call. */
  get hasAnswered(): boolean {
    return this.#answered;
  }

  /** Sends a call; `body` is the message with its prefix. Returns the function that cancels it. */
  send(
    call: ClientCall,
    request: { readonly path: string; readonly authority: string; readonly body: Buffer } & {
      readonly headers: readonly (readonly [name: string, value: string])[];
    },
  ): () => void {
    const { path, authority, body, headers } = request;
    const block = Buffer.concat([this.#commonBlock(path, authority), encodeHeaders(headers)]);
    const pending = { call, block, body };
    const started = this.#canStart(pending) ? this.#start(pending) : undefined;
    if (started === undefined) this.#pending.add(pending);
    return () => {
      if (!this.#pending.delete(pending)) this.#cancel(call, started);
    };
  }

  ping(): void {
    this.#output.append(frame(FrameType.PING, 0, 0, Buffer.alloc(8)));
  }

  /** Ends the connection after its calls. */
  close(): void {
    this.#closing = true;
    this.#refusePending();
    this.#endWhenIdle();
  }

  destroy(error?: Error): void {
    this.#error ??= error;
    this.#socket.destroy();
  }

  #commonBlock(path: string, authority: string): Buffer {
    let block = this.#blocks.get(path);
    if (block === undefined) {
      const scheme = 'encrypted' in this.#socket ? 'https' : 'http';
      block = encodeHeaders([
        ...Object.entries({ ':method': 'POST', ':scheme': scheme, ':path': path, ':authority': authority }),
        ...Object.entries({ te: 'trailers', 'content-type': 'application/grpc' }),
      ]);
      this.#blocks.set(path, block);
    }
    return block;
  }

  #canStart({ body }: Pending): boolean {
    return (
      body.length <= this.#sendWindow &&
      body.length <= this.#streamWindow &&
      this.#calls.size < (this.#maxStreams ?? 0)
    );
  }

  #start({ call, block, body }: Pending): StartedCall {
    const streamId = this.#nextStreamId;
    this.#nextStreamId += 2;
    const started = { id: streamId, call };
    this.#calls.add(started);
    this.#sendWindow -= body.length;
    this.#output.append(frame(FrameType.HEADERS, Flag.END_HEADERS, streamId, block));
    for (let at = 0; at < body.length; at += http2.maxFrameBytes) {
      const part = body.subarray(at, at + http2.maxFrameBytes);
      const flags = at + part.length === body.length ? Flag.END_STREAM : 0;
      this.#output.append(frame(FrameType.DATA, flags, streamId, part));
    }
    // A new connection takes over long before the ids of this one are used up.
    if (streamId > http2.maxWindowBytes / 2) this.#goAway(streamId);
    return started;
  }

  #startPending(): void {
    for (const pending of this.#pending) {
      if (!this.isOpen || !this.#canStart(pending)) return;
      this.#pending.delete(pending);
      this.#start(pending);
    }
  }

  #cancel(call: ClientCall, startedAtOnce: StartedCall | undefined): void {
    // A call that was pending has got its stream meanwhile.
    const started = startedAtOnce ?? [...this.#calls.values()].find((other) => other.call === call);
    if (started === undefined || this.#calls.get(started.id) !== started) return;
    this.#output.append(numberFrame(FrameType.RST_STREAM, started.id, ErrorCode.CANCEL));
    this.#remove(started);
  }

  #remove(started: StartedCall): void {
    this.#calls.delete(started);
    if (this.#closing) this.#endWhenIdle();
    else if (this.#pending.size > 0) this.#startPending();
  }

  #endWhenIdle(): void {
    if (this.#calls.size > 0) return;
    this.#output.flush();
    // The server may keep its side open.
    this.#socket.destroySoon();
  }

  #read(chunk: Buffer): void {
    this.#reads += 1;
    try {
      this.#reader.read(chunk, (type, flags, streamId, payload) =>
        this.#handle(type, { flags, streamId, payload }),
      );
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #handle(type: number, { flags, streamId, payload }: Frame): void {
    if (this.#block !== undefined && type !== FrameType.CONTINUATION) throw violation('incomplete headers');
    switch (type) {
      case FrameType.DATA:
        this.#onData({ flags, streamId, payload });
        return;
      case FrameType.HEADERS:
        this.#block = { streamId, ends: (flags & Flag.END_STREAM) !== 0, fragments: [] };
        this.#onFragment(flags, http2.unpadHeaders(flags, payload).fragment);
        return;
      case FrameType.CONTINUATION:
        this.#onFragment(flags, payload);
        return;
      case FrameType.RST_STREAM:
        http2.expectLength(payload, 4, 'RST_STREAM');
        this.#onReset(streamId, payload.readUInt32BE());
        return;
      case FrameType.SETTINGS:
        if ((flags & Flag.ACK) === 0) this.#onSettings(payload);
        return;
      case FrameType.PING:
        http2.expectLength(payload, 8, 'PING');
        if ((flags & Flag.ACK) === 0) this.#output.append(frame(FrameType.PING, Flag.ACK, 0, payload));
        else this.#events.onAlive();
        return;
      case FrameType.GOAWAY:
        if (payload.length < 8) throw violation('GOAWAY');
        this.#goAway(payload.readUInt32BE() & http2.maxWindowBytes);
        return;
      case FrameType.WINDOW_UPDATE:
        http2.expectLength(payload, 4, 'WINDOW_UPDATE');
        if (streamId === 0) this.#onWindow(payload.readUInt32BE() & http2.maxWindowBytes);
        return;
      case FrameType.PUSH_PROMISE:
        throw violation('PUSH_PROMISE');
    }
  }

  #onData({ flags, streamId, payload }: Frame): void {
    this.#received += payload.length;
    if (this.#received >= extendAfterBytes) {
      this.#output.append(numberFrame(FrameType.WINDOW_UPDATE, 0, this.#received));
      this.#received = 0;
    }
    const data = http2.unpadData(flags, payload);
    this.#calls.get(streamId)?.call.chunks.push(data);
    if ((flags & Flag.END_STREAM) !== 0) this.#onEnd(streamId);
  }

  #onFragment(flags: number, fragment: Buffer): void {
    const block = this.#block;
    if (block === undefined) throw violation('CONTINUATION');
    block.fragments.push(fragment);
    const bytes = block.fragments.reduce((sum, { length }) => sum + length, 0);
    if (bytes > maxHeaderBytes || block.fragments.length > maxHeaderBytes / 256)
      throw violation('headers of more than 16 KiB');
    if ((flags & Flag.END_HEADERS) === 0) return;
    this.#block = undefined;
    // Blocks of streams that are gone are decoded, too: the block changes the state of HPACK.
    const fields = this.#decoder.decode(
      block.fragments.length > 1 ? Buffer.concat(block.fragments) : fragment,
    );
    const started = this.#calls.get(block.streamId);
    if (started === undefined) return;
    const { headers } = started.call;
    for (const [name, value] of fields ?? []) if (readHeaders.has(name)) headers.set(name, value);
    if (block.ends) this.#onEnd(block.streamId);
  }

  #onEnd(streamId: number): void {
    const started = this.#calls.get(streamId);
    if (started === undefined) return;
    this.#answered = true;
    this.#remove(started);
    started.call.onEnd();
  }

  #onReset(streamId: number, code: number): void {
    const started = this.#calls.get(streamId);
    if (started === undefined) return;
    this.#remove(started);
    const message = `the stream was reset (${code})`;
    started.call.onReset({ refused: code === ErrorCode.REFUSED_STREAM, message });
  }

  #onSettings(payload: Buffer): void {
    this.#maxStreams ??= Number.POSITIVE_INFINITY;
    for (const [id, value] of http2.readSettings(payload)) {
      if (id === Setting.MAX_CONCURRENT_STREAMS) this.#maxStreams = value;
      else if (id === Setting.INITIAL_WINDOW_SIZE) this.#streamWindow = value;
    }
    this.#output.append(frame(FrameType.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)));
    this.#events.onAlive();
    this.#startPending();
  }

  #onWindow(bytes: number): void {
    this.#sendWindow += bytes;
    if (this.#sendWindow > http2.maxWindowBytes) throw violation('a window of more than 2^31-1');
    this.#startPending();
  }

  /** RFC 9113 §6.8: streams after the last one were not processed. */
  #goAway(lastStreamId: number): void {
    this.#closing = true;
    this.#events.onGoaway();
    for (const started of [...this.#calls.values()]) {
      if (started.id <= lastStreamId) continue;
      this.#calls.delete(started);
      started.call.onReset({ refused: true, message: 'the server is closing the connection' });
    }
    this.#refusePending();
    this.#endWhenIdle();
  }

  #refusePending(): void {
    const waiting = [...this.#pending];
    this.#pending.clear();
    for (const { call } of waiting) call.onReset({ refused: true, message: 'the connection is closed' });
  }

  #onClose(): void {
    this.#closing = true;
    const message = `the connection was lost${this.#error ? `: ${this.#error.message}` : ''}`;
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const { call } of calls) call.onReset({ refused: false, message });
    this.#refusePending();
    this.#events.onClose(this.#error);
  }
}

interface StartedCall {
  /** Id of the stream. */
  readonly id: number;
  readonly call: ClientCall;
}

interface Frame {
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

function violation(what: string): Error {
  return new ConnectionError(ErrorCode.PROTOCOL_ERROR, `the server sent ${what}`);
}
