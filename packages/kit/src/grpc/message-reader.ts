/**
 * Reads the fields of protobuf messages that are usual on a hot path. At the first byte that it
 * does not expect it sets `failed`, and what it returns from then on has no meaning: such a message
 * is left to protobuf-es. Text outside ASCII counts as unexpected.
 *
 * @see https://protobuf.dev/programming-guides/encoding/
 */
export class MessageReader {
  readonly #bytes: Buffer;
  #position = 0;
  failed: boolean = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The end of the outermost message. */
  get end(): number {
    return this.#bytes.length;
  }

  /** Whether a message that ends at `end` has another field. */
  hasField(end: number): boolean {
    return !this.failed && this.#position < end;
  }

  /** A field number × 8 + the wire type; numbers above 15 take more than one byte. */
  readTag(): number {
    return this.readNumber();
  }

  /** A varint of at most four bytes. */
  readNumber(): number {
    let value = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      // Beyond the end it is 0x80, so that the number does not end.
      const byte = this.#bytes[this.#position++] ?? 0x80;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    this.failed = true;
    return 0;
  }

  /** Reads the length of a field that lies within `limit`; returns the end of the field. */
  readEnd(limit: number): number {
    const end = this.readNumber() + this.#position;
    if (end <= limit) return end;
    this.failed = true;
    return this.#position;
  }

  readText(limit: number): string {
    const end = this.readEnd(limit);
    const start = this.#position;
    this.#skipText(end);
    return this.#bytes.toString('latin1', start, end);
  }

  /** Reads bytes as text with one character for each byte. */
  readLatin1(limit: number): string {
    const end = this.readEnd(limit);
    const start = this.#position;
    this.#position = end;
    return this.#bytes.toString('latin1', start, end);
  }

  /** Skips text that the message must have valid. */
  skipText(limit: number): void {
    this.#skipText(this.readEnd(limit));
  }

  /** Skips an unknown field after its tag. */
  skipField(tag: number, limit: number): void {
    if (tag >>> 3 === 0) this.failed = true;
    switch (tag & 7) {
      case 0:
        this.#skipVarint(limit);
        return;
      case 1:
        this.#skipTo(this.#position + 8, limit);
        return;
      case 2:
        this.#skipTo(this.readEnd(limit), limit);
        return;
      case 5:
        this.#skipTo(this.#position + 4, limit);
        return;
      default:
        this.failed = true;
    }
  }

  #skipText(end: number): void {
    for (let at = this.#position; at < end; at += 1) {
      if ((this.#bytes[at] ?? 0) >= 0x80) this.failed = true;
    }
    this.#position = end;
  }

  #skipVarint(limit: number): void {
    // 64 bits take ten bytes; nine are enough for what is usual.
    for (let count = 0; count < 9 && this.#position < limit; count += 1) {
      if ((this.#bytes[this.#position++] ?? 0) < 0x80) return;
    }
    this.failed = true;
  }

  #skipTo(end: number, limit: number): void {
    if (end > limit) this.failed = true;
    this.#position = end;
  }
}
