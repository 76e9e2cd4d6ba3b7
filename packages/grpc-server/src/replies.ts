import type { ReplyStream, Stream } from './call.ts';
import { defaultWindowBytes, Flag, FrameType, frame, maxFrameBytes, maxWindowBytes } from './frames.ts';
import type { Output } from './output.ts';
import type { PlainReply } from './refusal.ts';
import {
  fitsFrame,
  messagePrefixBytes,
  plainHeadersBlock,
  prefixMessage,
  trailersBlock,
  trailersOnlyBlock,
  writeHeaders,
  writeLastHeaders,
  writeReply,
} from './reply.ts';
import type { GrpcStatus } from './status.ts';

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

  /** @param finished called when the last frame of a stream has been written. */
  constructor(output: Output, finished: (stream: Stream) => void) {
    this.#output = output;
    this.#finished = finished;
  }

  /** Whether a reply waits for the client to grant a window. */
  get blocked(): boolean {
    return this.#blocked.size > 0;
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
    stream.waiting.push(prefixMessage(message));
    stream.lastBlock = trailersBlock({ code: 0, message: '' });
    this.#pump(stream);
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
    stream.waiting.push(body);
    stream.lastBlock = noBlock;
    this.#pump(stream);
  }

  /** The replies of a server-streaming call. */
  open(stream: Stream): ReplyStream {
    const ended = () => stream.lastBlock !== undefined || stream.signal.aborted;
    return {
      send: (message) => {
        if (ended()) return;
        if (!stream.headersSent) writeHeaders(this.#output, stream.id);
        stream.headersSent = true;
        stream.waiting.push(prefixMessage(message));
        this.#pump(stream);
      },
      end: (status) => {
        if (!ended()) this.end(stream, status);
      },
    };
  }

  /** Forgets a stream that has ended otherwise. */
  drop(stream: Stream): void {
    this.#blocked.delete(stream);
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
