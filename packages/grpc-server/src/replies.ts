import type { ReplyStream, Stream } from './call.ts';
import {
  defaultWindowBytes,
  Flag,
  FrameType,
  frame,
  frameHeaderBytes,
  maxFrameBytes,
  maxWindowBytes,
  writeFrameHeader,
} from './frames.ts';
import { encodeHeaders } from './hpack/encoder.ts';
import type { Output } from './output.ts';
import { messagePrefixBytes, type PlainReply } from './request.ts';
import { Code, encodeMessage, type GrpcStatus } from './status.ts';

/** Ends a stream by the last DATA frame instead of trailers, for replies that are not gRPC. */
const noBlock = Buffer.alloc(0);

/**
 * Sends the replies of one connection, within the windows that its client grants (RFC 9113 §6.9).
 */
export class Replies {
  readonly #output: Output;
  readonly #finished: (stream: Stream) => void;
  /** Streams whose DATA waits for a window, in the order in which they began to wait. */
  readonly #blocked = new Set<Stream>();
  #connectionWindow = defaultWindowBytes;
  initialWindow = defaultWindowBytes;
  /** DATA that waits for the client to grant a window. */
  waitingBytes = 0;
  /** DATA that was sent after it had waited. */
  resumedBytes = 0;

  /** @param finished called when the last frame of a stream has been written. */
  constructor(output: Output, finished: (stream: Stream) => void) {
    this.#output = output;
    this.#finished = finished;
  }

  /** The one message of a unary call. */
  unary(stream: Stream, message: Uint8Array): void {
    const bytes = messagePrefixBytes + message.length;
    if (fitsFrame(message) && bytes <= stream.sendWindow && bytes <= this.#connectionWindow) {
      this.#connectionWindow -= bytes;
      writeReply(this.#output, stream.id, message);
      this.#finished(stream);
      return;
    }
    writeHeaders(this.#output, stream.id);
    stream.headersSent = true;
    stream.lastBlock = trailersBlock({ code: 0, message: '' });
    this.#send(stream, prefixMessage(message));
  }

  /** Ends a call with a status and no further message. */
  end(stream: Stream, status: GrpcStatus): void {
    if (stream.headersSent) {
      stream.lastBlock = trailersBlock(status);
      this.#pump(stream);
      return;
    }
    stream.lastBlock = noBlock;
    writeLastHeaders(this.#output, stream.id, trailersOnlyBlock(status));
    this.#finished(stream);
  }

  /** Answers a request that is not gRPC. */
  endPlain(stream: Stream, { httpStatus, text }: PlainReply): void {
    const body = Buffer.from(text);
    writeHeaders(this.#output, stream.id, plainHeadersBlock(httpStatus, body.length));
    stream.headersSent = true;
    stream.lastBlock = noBlock;
    this.#send(stream, body);
  }

  /** The replies of a server-streaming call. */
  open(stream: Stream): ReplyStream {
    const ended = () => stream.lastBlock !== undefined || stream.signal.aborted;
    return {
      send: (message) => {
        if (ended()) return;
        if (!stream.headersSent) writeHeaders(this.#output, stream.id);
        stream.headersSent = true;
        this.#send(stream, prefixMessage(message));
      },
      end: (status) => {
        if (!ended()) this.end(stream, status);
      },
    };
  }

  /** Forgets a stream that has ended otherwise. */
  drop(stream: Stream): void {
    this.#blocked.delete(stream);
    for (const { length } of stream.waiting) this.waitingBytes -= length;
    stream.waiting = [];
    stream.lastBlock ??= noBlock;
  }

  /**
   * SETTINGS_INITIAL_WINDOW_SIZE changes the windows of open streams, too (RFC 9113 §6.9.2).
   *
   * @returns false when a window overflows.
   */
  setInitialWindow(bytes: number, streams: Iterable<Stream>): boolean {
    const difference = bytes - this.initialWindow;
    this.initialWindow = bytes;
    for (const stream of streams) {
      stream.sendWindow += difference;
      if (stream.sendWindow > maxWindowBytes) return false;
    }
    return true;
  }

  /** Goes on with the streams that waited for a window. */
  resume(): void {
    for (const stream of [...this.#blocked]) {
      if (this.#connectionWindow <= 0) return;
      this.#pump(stream);
    }
  }

  /** @returns false when the window overflows. */
  addConnectionWindow(bytes: number): boolean {
    if (this.#connectionWindow + bytes > maxWindowBytes) return false;
    this.#connectionWindow += bytes;
    this.resume();
    return true;
  }

  /** @returns false when the window overflows. */
  addWindow(stream: Stream, bytes: number): boolean {
    if (stream.sendWindow + bytes > maxWindowBytes) return false;
    stream.sendWindow += bytes;
    if (this.#blocked.has(stream)) this.#pump(stream);
    return true;
  }

  #send(stream: Stream, bytes: Buffer): void {
    stream.waiting.push(bytes);
    this.waitingBytes += bytes.length;
    this.#pump(stream);
  }

  /** Sends as much of a stream's DATA as the windows allow, and the end after it. */
  #pump(stream: Stream): void {
    const endsWithData = stream.lastBlock === noBlock;
    for (;;) {
      const [bytes] = stream.waiting;
      if (bytes === undefined) break;
      const length = Math.min(bytes.length, maxFrameBytes, stream.sendWindow, this.#connectionWindow);
      if (length <= 0) {
        this.#blocked.add(stream);
        return;
      }
      stream.sendWindow -= length;
      this.#connectionWindow -= length;
      this.waitingBytes -= length;
      this.resumedBytes += length;
      if (length < bytes.length) stream.waiting[0] = bytes.subarray(length);
      else stream.waiting.shift();
      const last = endsWithData && stream.waiting.length === 0;
      const flags = last ? Flag.END_STREAM : 0;
      this.#output.append(frame(FrameType.DATA, flags, stream.id, bytes.subarray(0, length)));
    }
    this.#blocked.delete(stream);
    if (stream.lastBlock === undefined) return;
    if (!endsWithData) writeLastHeaders(this.#output, stream.id, stream.lastBlock);
    this.#finished(stream);
  }
}

/** Encodings of a server that accepts gzip. */
const acceptedEncodings = 'identity,gzip';

/** Response headers of every call that answers with a message. */
const responseHeaders = encodeHeaders([
  [':status', '200'],
  ['content-type', 'application/grpc'],
]);

/** Trailers of a call that succeeded. */
const okTrailers = encodeHeaders([['grpc-status', '0']]);

const headersFlags = Flag.END_HEADERS;
const trailersFlags = Flag.END_HEADERS | Flag.END_STREAM;

/** Size of a successful reply on the wire. */
function replyBytes(message: Uint8Array): number {
  return (
    3 * frameHeaderBytes + responseHeaders.length + messagePrefixBytes + message.length + okTrailers.length
  );
}

/** Whether a message fits into one DATA frame. */
function fitsFrame(message: Uint8Array): boolean {
  return messagePrefixBytes + message.length <= maxFrameBytes;
}

/** Writes headers, message and trailers of a successful unary call in one go. */
function writeReply(output: Output, streamId: number, message: Uint8Array): void {
  let at = output.reserve(replyBytes(message));
  const { buffer } = output;
  at = writeBlock(buffer, at, { streamId, flags: headersFlags, block: responseHeaders });
  const length = messagePrefixBytes + message.length;
  at = writeFrameHeader(buffer, at, { length, type: FrameType.DATA, flags: 0, streamId });
  buffer[at] = 0;
  buffer.writeUInt32BE(message.length, at + 1);
  buffer.set(message, at + messagePrefixBytes);
  writeBlock(buffer, at + length, { streamId, flags: trailersFlags, block: okTrailers });
}

function writeBlock(
  buffer: Buffer,
  at: number,
  { streamId, flags, block }: { readonly streamId: number; readonly flags: number; readonly block: Buffer },
): number {
  const length = block.length;
  const start = writeFrameHeader(buffer, at, { length, type: FrameType.HEADERS, flags, streamId });
  buffer.set(block, start);
  return start + length;
}

/** Writes the response headers of a call whose messages follow in DATA frames of their own. */
function writeHeaders(output: Output, streamId: number, block: Buffer = responseHeaders): void {
  const at = output.reserve(frameHeaderBytes + block.length);
  writeBlock(output.buffer, at, { streamId, flags: headersFlags, block });
}

/** Writes a header block that ends the stream: trailers, or a whole reply without a message. */
function writeLastHeaders(output: Output, streamId: number, block: Buffer): void {
  const at = output.reserve(frameHeaderBytes + block.length);
  writeBlock(output.buffer, at, { streamId, flags: trailersFlags, block });
}

/** A message with its prefix. */
function prefixMessage(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(messagePrefixBytes + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, messagePrefixBytes);
  return bytes;
}

/** Trailers of a call whose headers have been sent. */
function trailersBlock(status: GrpcStatus): Buffer {
  if (status.code === Code.OK) return okTrailers;
  return encodeHeaders([
    ['grpc-status', String(status.code)],
    ['grpc-message', encodeMessage(status.message)],
  ]);
}

/** Headers of a call that ends without a message ("Trailers-Only"). */
function trailersOnlyBlock(status: GrpcStatus): Buffer {
  return encodeHeaders([
    [':status', '200'],
    ['content-type', 'application/grpc'],
    ['grpc-status', String(status.code)],
    ['grpc-message', encodeMessage(status.message)],
    ...(status.code === Code.UNIMPLEMENTED ? [['grpc-accept-encoding', acceptedEncodings] as const] : []),
  ]);
}

/** Headers of a reply to a request that is not gRPC. */
function plainHeadersBlock(httpStatus: number, bodyBytes: number): Buffer {
  return encodeHeaders([
    [':status', String(httpStatus)],
    ['content-type', 'text/plain; charset=utf-8'],
    ['content-length', String(bodyBytes)],
    ...(httpStatus === 405 ? [['allow', 'POST'] as const] : []),
  ]);
}
