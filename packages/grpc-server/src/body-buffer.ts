const minBlockBytes = 256;
const maxBlockBytes = 64 * 1024;

/** Smaller pieces are copied: each one costs more than it holds. */
const minKeptBytes = 4 * 1024;

const noBytes = Buffer.alloc(0);

/**
 * A body that arrives in pieces. Its memory can be freed at once, not by a garbage collection,
 * which comes late while clients send much.
 */
export class BodyBuffer {
  readonly #blocks: Buffer[] = [];
  /** The last block, where pieces are copied to, and the bytes in it. */
  #open: Buffer = noBytes;
  #openBytes = 0;
  #length = 0;
  #heldBytes = 0;

  /** Bytes that have arrived. */
  get length(): number {
    return this.#length;
  }

  /** Memory that is taken. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Adds a piece, which may not be used by others afterwards. */
  append(piece: Buffer): void {
    if (piece.length >= minKeptBytes && piece.length === piece.buffer.byteLength) this.#keep(piece);
    else this.#copy(piece);
    this.#length += piece.length;
  }

  /** A number in the first bytes; undefined while they have not arrived. */
  readUInt32BE(at: number): number | undefined {
    const [first] = this.#blocks;
    return first === undefined || this.#length < at + 4 ? undefined : first.readUInt32BE(at);
  }

  /** All bytes in one piece. The body is empty afterwards. */
  take(): Buffer {
    this.#closeBlock();
    const [first] = this.#blocks;
    if (first !== undefined && this.#blocks.length === 1) return first;
    const whole = Buffer.concat(this.#blocks, this.#length);
    this.release();
    return whole;
  }

  /** Frees the memory. */
  release(): void {
    for (const { buffer } of this.#blocks.splice(0)) if (buffer instanceof ArrayBuffer) buffer.transfer(0);
    this.#open = noBytes;
    this.#openBytes = 0;
    this.#heldBytes = 0;
    this.#length = 0;
  }

  #keep(piece: Buffer): void {
    this.#closeBlock();
    this.#blocks.push(piece);
    this.#heldBytes += piece.length;
  }

  #copy(piece: Buffer): void {
    for (let copied = 0; copied < piece.length; ) {
      if (this.#openBytes === this.#open.length) this.#openBlock(piece.length - copied);
      const bytes = piece.copy(this.#open, this.#openBytes, copied);
      this.#openBytes += bytes;
      copied += bytes;
    }
  }

  /** Blocks are as large as what has arrived, so that many small pieces need few of them. */
  #openBlock(bytes: number): void {
    const wanted = Math.max(minBlockBytes, bytes, this.#length);
    this.#open = Buffer.allocUnsafeSlow(Math.min(maxBlockBytes, wanted));
    this.#openBytes = 0;
    this.#blocks.push(this.#open);
    this.#heldBytes += this.#open.length;
  }

  #closeBlock(): void {
    if (this.#openBytes < this.#open.length) {
      this.#blocks[this.#blocks.length - 1] = this.#open.subarray(0, this.#openBytes);
    }
    this.#open = noBytes;
    this.#openBytes = 0;
  }
}
