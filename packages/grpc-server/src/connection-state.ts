import { ConnectionError, defaultWindowBytes, ErrorCode, preface } from './frames.ts';

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

/**
 * Twice the default, so that what is not given back yet never leaves less than the default: clients
 * may wait until a whole message fits.
 */
export const connectionWindowBytes: number = 2 * defaultWindowBytes;

/**
 * The receive window of a connection or of a stream. Bytes are given back as they arrive:
 * `ClientBuffers` bounds what is held of them.
 */
export class ReceiveWindow {
  readonly #windowBytes: number;
  /** Received bytes for which the client has not got its window back. */
  #unacknowledgedBytes = 0;

  constructor(windowBytes: number) {
    this.#windowBytes = windowBytes;
  }

  /** Counts received bytes, and returns how much to give back: half of the window at a time. */
  receive(bytes: number): number {
    this.#unacknowledgedBytes += bytes;
    if (this.#unacknowledgedBytes < this.#windowBytes / 2) return 0;
    const released = this.#unacknowledgedBytes;
    this.#unacknowledgedBytes = 0;
    return released;
  }
}

/** Detects a client that does not take its replies. */
export class StallDetector {
  readonly #timeoutMs: number;
  /** Since when there was no progress; undefined while nothing waits. */
  #sinceMs: number | undefined;
  #progress = 0;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Whether there was no progress for the timeout.
   *
   * @param waiting bytes that wait.
   * @param progress bytes that went out so far.
   */
  isStalled(nowMs: number, waiting: number, progress: number): boolean {
    if (waiting === 0) this.#sinceMs = undefined;
    else if (this.#sinceMs === undefined || progress !== this.#progress) this.#sinceMs = nowMs;
    this.#progress = progress;
    return this.#sinceMs !== undefined && nowMs - this.#sinceMs > this.#timeoutMs;
  }
}
