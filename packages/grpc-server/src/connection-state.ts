import type { Socket } from 'node:net';
import { ConnectionError, ErrorCode, preface } from './frames.ts';

/** Reads the connection preface, which may arrive in pieces. */
export class PrefaceReader {
  #bytes = 0;

  get done(): boolean {
    return this.#bytes === preface.length;
  }

  /** Returns the bytes after the preface. */
  read(chunk: Buffer): Buffer {
    const wanted = preface.subarray(this.#bytes);
    const got = chunk.subarray(0, wanted.length);
    if (!got.equals(wanted.subarray(0, got.length))) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'not an HTTP/2 connection preface');
    }
    this.#bytes += got.length;
    return chunk.subarray(got.length);
  }
}

/** The receive window of a connection. */
export class ReceiveWindow {
  readonly #windowBytes: number;
  /** Received bytes for which the client has not got its window back. */
  #unacknowledgedBytes = 0;

  constructor(windowBytes: number) {
    this.#windowBytes = windowBytes;
  }

  /**
   * Counts received bytes, and returns how much of the window to give back, half of it at a time.
   * The bytes of incomplete requests stay counted: the window limits what one client makes us hold.
   */
  receive(
    bytes: number,
    streams: Iterable<{ readonly remoteClosed: boolean; readonly bodyBytes: number }>,
  ): number {
    this.#unacknowledgedBytes += bytes;
    if (this.#unacknowledgedBytes > this.#windowBytes) {
      throw new ConnectionError(
        ErrorCode.FLOW_CONTROL_ERROR,
        'the client exceeds the window of the connection',
      );
    }
    if (this.#unacknowledgedBytes < this.#windowBytes / 2) return 0;
    let incomplete = 0;
    for (const stream of streams) if (!stream.remoteClosed) incomplete += stream.bodyBytes;
    const released = this.#unacknowledgedBytes - Math.min(incomplete, this.#unacknowledgedBytes);
    this.#unacknowledgedBytes -= released;
    return released;
  }
}

/** Frames of a stream that we reset may still be on the wire: this many streams are remembered. */
const maxResets = 1000;

/** Streams that were reset by us, the most recent ones. */
export class ResetStreams {
  readonly #ids = new Set<number>();

  has(streamId: number): boolean {
    return this.#ids.has(streamId);
  }

  add(streamId: number): void {
    this.#ids.add(streamId);
    if (this.#ids.size <= maxResets) return;
    for (const oldest of this.#ids) {
      this.#ids.delete(oldest);
      break;
    }
  }

  delete(streamId: number): void {
    this.#ids.delete(streamId);
  }
}

/** Detects a client that does not read its replies. */
export class StallDetector {
  readonly #socket: Socket;
  readonly #timeoutMs: number;
  /** Since when nothing was read; undefined while no reply waits. */
  #sinceMs: number | undefined;
  #bytesWritten = 0;

  constructor(socket: Socket, timeoutMs: number) {
    this.#socket = socket;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Whether the client has read nothing for the timeout.
   *
   * @param blocked replies wait for flow control.
   */
  isStalled(nowMs: number, blocked: boolean): boolean {
    const waits = this.#socket.writableLength > 0 || blocked;
    if (this.#sinceMs === undefined) {
      if (waits) this.#restart(nowMs);
    } else if (this.#socket.bytesWritten !== this.#bytesWritten) this.#restart(nowMs);
    else if (!waits) this.#sinceMs = undefined;
    else return nowMs - this.#sinceMs > this.#timeoutMs;
    return false;
  }

  #restart(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#bytesWritten = this.#socket.bytesWritten;
  }
}
