import type { PeerCertificate } from 'node:tls';
import { BodyBuffer } from './body-buffer.ts';
import type { ReceiveWindow } from './connection-state.ts';
import type { Replies } from './replies.ts';
import { messagePrefixBytes, type Refusal, type RequestHead } from './request.ts';
import type { GrpcStatus } from './status.ts';

/** The other end of a connection. */
export interface Peer {
  /** IP address; empty on a Unix socket. */
  readonly address: string;
  /** The verified client certificate of a connection with mutual TLS. */
  readonly certificate: PeerCertificate | undefined;
}

/** A call without its message. */
export interface Call {
  /** Full method name, such as `/grpc.health.v1.Health/Check`. */
  readonly path: string;
  readonly peer: Peer;
  /** The first value of a request header; `name` in lower case. */
  header(name: string): string | undefined;
  /** Time until the client's deadline; infinite without one. */
  timeLeftMs(): number;
  /**
   * Aborts when the client cancels, its deadline passes or the connection is lost. Created on first
   * use.
   */
  readonly signal: AbortSignal;
}

/**
 * Handles a unary call: request bytes in, reply bytes or a status out. Return a value rather than a
 * promise where nothing is awaited: a promise is a noticeable part of the cost of a call.
 * `ServerOptions.toStatus` converts thrown errors.
 */
export type UnaryHandler = (
  request: Uint8Array,
  call: Call,
) => Uint8Array | GrpcStatus | Promise<Uint8Array | GrpcStatus>;

/** The replies of a server-streaming call. */
export interface ReplyStream {
  send(message: Uint8Array): void;
  end(status: GrpcStatus): void;
}

/** Handles a server-streaming call, until `call.signal` aborts. */
type StreamHandler = (request: Uint8Array, replies: ReplyStream, call: Call) => void;

/** The methods of a server by their full names. */
export interface Methods {
  readonly unary: Readonly<Record<string, UnaryHandler>>;
  readonly streaming?: Readonly<Record<string, StreamHandler>>;
}

const noBytes = Buffer.alloc(0);

/** Memory of a stream without its headers and its body. */
const streamBytes = 1_024;

/** Strings that are not used any more take memory until a garbage collection, which comes late. */
const stringFactor = 3;

/**
 * A stream of a connection: the request as it arrives, the part of the reply that waits, and the
 * call of its handler.
 */
export class Stream implements Call {
  readonly id: number;
  readonly head: RequestHead;
  readonly peer: Peer;
  readonly startedMs: number;
  readonly deadlineMs: number;
  /** Bytes that we may still send (RFC 9113 §6.9.1). */
  sendWindow: number;
  /** The client has sent END_STREAM. */
  remoteClosed: boolean = false;
  /** Reply to a request that is not a call of a method; its body is not kept. */
  refusal: Refusal | undefined;
  /** The reply has any number of messages. */
  streaming: boolean = false;
  /** The handler has not returned yet. */
  running: boolean = false;
  /** Response headers have been sent. */
  headersSent: boolean = false;
  /** DATA that waits for flow control, and the block that ends the stream after it. */
  waiting: Buffer[] = [];
  lastBlock: Buffer | undefined;
  /** Flow control of the request. Absent while its body has at most one frame, as usual. */
  receiveWindow: ReceiveWindow | undefined;
  #bodyBytes = 0;
  /** A body that arrived in one frame: a part of what was read from the socket. */
  #frame: Buffer = noBytes;
  /** A body that arrives in several frames. */
  #pieces: BodyBuffer | undefined;
  #controller: AbortController | undefined;
  #aborted: boolean = false;

  constructor(
    id: number,
    head: RequestHead,
    { peer, nowMs, sendWindow }: { peer: Peer; nowMs: number; sendWindow: number },
  ) {
    this.id = id;
    this.head = head;
    this.peer = peer;
    this.startedMs = nowMs;
    this.deadlineMs = nowMs + (head.timeoutMs ?? 0);
    this.sendWindow = sendWindow;
  }

  get path(): string {
    return this.head.path;
  }

  header(name: string): string | undefined {
    return this.head.fields.find((field) => field[0] === name)?.[1];
  }

  timeLeftMs(): number {
    return this.deadlineMs - performance.now();
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /** Aborts the handler: its reply is not needed anymore. */
  abort(): void {
    this.#aborted = true;
    this.#controller?.abort();
  }

  get bodyBytes(): number {
    return this.#bodyBytes;
  }

  /** Memory of the request while it is not complete. */
  get heldBytes(): number {
    return streamBytes + stringFactor * this.head.bytes + (this.#pieces?.heldBytes ?? this.#frame.length);
  }

  /**
   * Adds the payload of a DATA frame. Only that of a single frame is kept without a copy: a kept
   * frame keeps all the bytes that arrived with it, and a small one costs more than it holds.
   */
  addBody(bytes: Buffer, last: boolean): void {
    const before = this.#bodyBytes;
    this.#bodyBytes += bytes.length;
    if (bytes.length === 0 || this.refusal !== undefined) return;
    if (last && before === 0) {
      this.#frame = bytes;
      return;
    }
    this.#pieces ??= new BodyBuffer();
    this.#pieces.append(bytes);
  }

  /**
   * Length that the prefix of the message announces; undefined while the prefix has not arrived.
   */
  get announcedBytes(): number | undefined {
    if (this.#pieces !== undefined) return this.#pieces.readUInt32BE(1);
    return this.#frame.length < messagePrefixBytes ? undefined : this.#frame.readUInt32BE(1);
  }

  /** Returns the body and forgets it. */
  takeBody(): Buffer {
    const body = this.#pieces?.take() ?? this.#frame;
    this.#pieces = undefined;
    this.#frame = noBytes;
    return body;
  }

  /** Frees the body of a request that is not handled. */
  releaseBody(): void {
    this.#pieces?.release();
    this.#pieces = undefined;
    this.#frame = noBytes;
  }
}

/** The parts of a connection that a call needs. */
export interface CallTarget {
  readonly host: {
    readonly methods: Methods;
    readonly toStatus: (error: unknown, path: string) => GrpcStatus;
  };
  readonly replies: Replies;
  /** Sends the reply of a unary call, unless it has ended meanwhile. */
  readonly reply: (stream: Stream, reply: Uint8Array | GrpcStatus) => void;
}

/** Calls the handler of a complete request. Errors become statuses. */
export function callHandler(stream: Stream, message: Uint8Array, { host, replies, reply }: CallTarget): void {
  const { unary, streaming } = host.methods;
  const handler = unary[stream.path];
  try {
    if (handler === undefined) {
      stream.streaming = true;
      streaming?.[stream.path]?.(message, replies.open(stream), stream);
      return;
    }
    const result = handler(message, stream);
    if (!(result instanceof Promise)) {
      reply(stream, result);
      return;
    }
    stream.running = true;
    result.then(
      (value) => reply(stream, value),
      (error: unknown) => reply(stream, host.toStatus(error, stream.path)),
    );
  } catch (error) {
    reply(stream, host.toStatus(error, stream.path));
  }
}
