import { Flag, FrameReader, FrameType } from '../../../src/frames.ts';
import { HpackDecoder } from '../../../src/hpack/decoder.ts';

/**
 * Checks that what a server sends over one connection is valid HTTP/2, whatever its client sent.
 *
 * @see RFC 9113 §5.1, §6
 */
export class ReplyChecker {
  readonly #reader = new FrameReader();
  readonly #decoder = new HpackDecoder(100_000);
  /** Streams with response headers, and whether they have ended. */
  readonly #ended = new Map<number, boolean>();
  #frames = 0;
  #failed = false;
  /** The first violation. */
  problem: string | undefined;

  read(chunk: Buffer): void {
    try {
      this.#reader.read(chunk, (type, flags, streamId, payload) => {
        this.problem ??= this.#check(type, flags, streamId, payload);
        this.#frames++;
      });
    } catch (error) {
      this.problem ??= `malformed: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  #check(type: number, flags: number, streamId: number, payload: Buffer): string | undefined {
    if (this.#failed) return `frame of type ${type} after the GOAWAY of a failed connection`;
    if (this.#frames === 0 && (type !== FrameType.SETTINGS || flags !== 0)) {
      // A connection that fails in its preface may not get that far.
      if (type !== FrameType.GOAWAY) return `the first frame has type ${type}`;
    }
    switch (type) {
      case FrameType.HEADERS:
        return this.#checkHeaders(flags, streamId, payload);
      case FrameType.DATA:
        return this.#checkStream(flags, streamId, false);
      case FrameType.RST_STREAM:
        this.#ended.set(streamId, true);
        return streamId === 0 || payload.length !== 4 ? 'malformed RST_STREAM' : undefined;
      case FrameType.WINDOW_UPDATE:
        return payload.length !== 4 || payload.readUInt32BE() === 0 ? 'malformed WINDOW_UPDATE' : undefined;
      case FrameType.SETTINGS:
        return streamId !== 0 || payload.length % 6 !== 0 ? 'malformed SETTINGS' : undefined;
      case FrameType.PING:
        return streamId !== 0 || payload.length !== 8 ? 'malformed PING' : undefined;
      case FrameType.GOAWAY:
        this.#failed = payload.length > 8;
        return streamId !== 0 || payload.length < 8 ? 'malformed GOAWAY' : undefined;
      default:
        return `unexpected frame of type ${type}`;
    }
  }

  #checkHeaders(flags: number, streamId: number, payload: Buffer): string | undefined {
    if ((flags & Flag.END_HEADERS) === 0) return 'HEADERS without END_HEADERS';
    const fields = this.#decoder.decode(payload) ?? [];
    const begins = !this.#ended.has(streamId);
    if (begins !== (fields[0]?.[0] === ':status')) return ':status missing, or in trailers';
    if (!begins && (flags & Flag.END_STREAM) === 0) return 'trailers without END_STREAM';
    return this.#checkStream(flags, streamId, begins);
  }

  #checkStream(flags: number, streamId: number, begins: boolean): string | undefined {
    if (streamId % 2 === 0) return `reply on stream ${streamId}`;
    const ended = this.#ended.get(streamId);
    if (ended === undefined && !begins) return 'DATA before HEADERS';
    if (ended === true) return 'frame after the end of its stream';
    this.#ended.set(streamId, (flags & Flag.END_STREAM) !== 0);
    return undefined;
  }
}
