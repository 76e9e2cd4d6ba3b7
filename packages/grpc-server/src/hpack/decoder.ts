import { decodeHuffman } from './huffman.ts';
import { fieldOverheadBytes, type HeaderField, staticTable } from './static-table.ts';

/**
 * Size of the dynamic table that a client may use: the default of SETTINGS_HEADER_TABLE_SIZE (RFC
 * 9113 §6.5.2).
 */
export const headerTableBytes = 4096;

const noBytes = new Uint8Array();

/** No number in HPACK needs more: sizes and indexes are bounded far below. */
const maxInteger = 0x0fff_ffff;

/**
 * Decodes the header blocks of one connection in the order of their arrival. Strings are latin1:
 * one character for each byte.
 *
 * @see RFC 7541 https://www.rfc-editor.org/rfc/rfc7541
 */
export class HpackDecoder {
  readonly #maxListBytes: number;
  /** The dynamic table, oldest first. */
  #table: HeaderField[] = [];
  #tableBytes = 0;
  #maxTableBytes = headerTableBytes;
  #changes = 0;
  #bytes: Uint8Array = noBytes;
  #position = 0;

  /**
   * @param maxListBytes bound on the decoded size of one block; a small block can name a large
   * field many times.
   */
  constructor(maxListBytes: number) {
    this.#maxListBytes = maxListBytes;
  }

  /**
   * Number of changes to the dynamic table: equal blocks mean equal fields while it stays the same.
   */
  get tableChanges(): number {
    return this.#changes;
  }

  /**
   * Decodes one whole block.
   *
   * @returns `undefined` when the list is larger than the bound; the state of the decoder stays
   * valid.
   * @throws Error when the block is malformed: the connection cannot be used any more.
   */
  decode(block: Uint8Array): HeaderField[] | undefined {
    this.#bytes = block;
    this.#position = 0;
    const fields: HeaderField[] = [];
    let listBytes = 0;
    let updatesAllowed = true;
    while (this.#position < block.length) {
      const first = block[this.#position] ?? 0;
      if ((first & 0xe0) === 0x20) {
        // RFC 7541 §4.2: a size update occurs at the beginning of a block only.
        if (!updatesAllowed) throw new Error('dynamic table size update after a field');
        this.#resize(this.#integer(5));
        continue;
      }
      updatesAllowed = false;
      const field = this.#field(first);
      listBytes += field[0].length + field[1].length + fieldOverheadBytes;
      if (listBytes <= this.#maxListBytes) fields.push(field);
    }
    // A block is a part of what was read from the socket, which must not be kept.
    this.#bytes = noBytes;
    return listBytes <= this.#maxListBytes ? fields : undefined;
  }

  /** One representation of RFC 7541 §6.1 and §6.2. */
  #field(first: number): HeaderField {
    if (first & 0x80) return this.#lookUp(this.#integer(7));
    const indexed = (first & 0x40) !== 0;
    const nameIndex = this.#integer(indexed ? 6 : 4);
    const name = nameIndex === 0 ? this.#string() : this.#lookUp(nameIndex)[0];
    const field: HeaderField = [name, this.#string()];
    if (indexed) this.#insert(field);
    return field;
  }

  #lookUp(index: number): HeaderField {
    const field =
      index <= staticTable.length
        ? staticTable[index - 1]
        : this.#table[this.#table.length - (index - staticTable.length)];
    if (field === undefined) throw new Error(`header index ${index} is not in the table`);
    return field;
  }

  #insert(field: HeaderField): void {
    this.#changes++;
    const bytes = field[0].length + field[1].length + fieldOverheadBytes;
    this.#evict(Math.max(0, this.#maxTableBytes - bytes));
    // RFC 7541 §4.4: a field that does not fit empties the table and is no error.
    if (bytes > this.#maxTableBytes) return;
    this.#table.push(field);
    this.#tableBytes += bytes;
  }

  #resize(bytes: number): void {
    if (bytes > headerTableBytes) throw new Error(`dynamic table size ${bytes} exceeds ${headerTableBytes}`);
    this.#changes++;
    this.#maxTableBytes = bytes;
    this.#evict(bytes);
  }

  #evict(limit: number): void {
    let evicted = 0;
    while (this.#tableBytes > limit) {
      const field = this.#table[evicted++];
      if (field === undefined) break;
      this.#tableBytes -= field[0].length + field[1].length + fieldOverheadBytes;
    }
    if (evicted > 0) this.#table.splice(0, evicted);
  }

  /** RFC 7541 §5.1. */
  #integer(prefixBits: number): number {
    const mask = (1 << prefixBits) - 1;
    let value = (this.#bytes[this.#position++] ?? 0) & mask;
    if (value < mask) return value;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#bytes[this.#position++];
      if (byte === undefined) throw new Error('header block ends within a number');
      value += (byte & 0x7f) * scale;
      if (value > maxInteger) throw new Error('number in a header block is too large');
      if (byte < 0x80) return value;
      // Bounds the zeros that could follow without making the value larger.
      if (scale > maxInteger) throw new Error('number in a header block is too long');
    }
  }

  /** RFC 7541 §5.2. */
  #string(): string {
    const huffman = ((this.#bytes[this.#position] ?? 0) & 0x80) !== 0;
    if (this.#position >= this.#bytes.length) throw new Error('header block ends before a string');
    const length = this.#integer(7);
    const start = this.#position;
    const end = start + length;
    if (end > this.#bytes.length) throw new Error('header block ends within a string');
    this.#position = end;
    return huffman ? decodeHuffman(this.#bytes, start, end) : latin1(this.#bytes, start, end);
  }
}

function latin1(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1');
}
