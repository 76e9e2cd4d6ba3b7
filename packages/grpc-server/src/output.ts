import type { Socket } from 'node:net';

/**
 * Space for the replies of one turn of the event loop on a busy connection; it grows when it is not
 * enough.
 */
const initialBytes = 16 * 1024;

/** A buffer that grew larger than this is not kept. */
const keptBytes = 256 * 1024;

/**
 * Collects what is to be written to a socket, so that all frames of one turn of the event loop
 * leave by one write: a write costs more CPU than a decision.
 */
export class Output {
  readonly #socket: Socket;
  readonly #schedule: () => void;
  #buffer: Buffer = Buffer.allocUnsafe(initialBytes);
  #length = 0;
  /** A buffer whose write has ended. */
  #spare: Buffer | undefined;

  /**
   * @param schedule called when there is something to flush for the first time since the last
   * flush.
   */
  constructor(socket: Socket, schedule: () => void) {
    this.#socket = socket;
    this.#schedule = schedule;
  }

  /**
   * Reserves `bytes` bytes, which the caller fills at once; returns their position in `buffer`,
   * which may be a new one.
   */
  reserve(bytes: number): number {
    if (this.#length === 0) this.#schedule();
    const at = this.#length;
    if (at + bytes > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(2 * (at + bytes));
      this.#buffer.copy(larger, 0, 0, at);
      this.#buffer = larger;
    }
    this.#length = at + bytes;
    return at;
  }

  /** The buffer of the last `reserve`. */
  get buffer(): Buffer {
    return this.#buffer;
  }

  append(bytes: Uint8Array): void {
    const at = this.reserve(bytes.length);
    this.#buffer.set(bytes, at);
  }

  flush(): void {
    if (this.#length === 0) return;
    const written = this.#buffer;
    const bytes = written.subarray(0, this.#length);
    this.#buffer = this.#spare ?? Buffer.allocUnsafe(initialBytes);
    this.#spare = undefined;
    this.#length = 0;
    if (!this.#socket.writable) return;
    this.#socket.write(bytes, () => {
      if (written.length <= keptBytes) this.#spare = written;
    });
  }
}

/** Flushes outputs once in each turn of the event loop in which something was written to them. */
export class FlushQueue {
  #waiting: Output[] = [];

  readonly flush = (): void => {
    const outputs = this.#waiting;
    this.#waiting = [];
    for (const output of outputs) output.flush();
  };

  add(output: Output): void {
    if (this.#waiting.push(output) === 1) setImmediate(this.flush);
  }
}
