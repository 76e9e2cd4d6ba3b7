import { decodeHuffman } from '@tollgate/grpc-server/hpack/huffman';
import { type HeaderField, staticTable } from '@tollgate/grpc-server/hpack/static-table';

/** The fields of a header block that the load generator looks at. */
export interface AnswerFields {
  /** `:status`; absent in trailers. */
  readonly httpStatus?: string;
  /** Absent when the block carries none. */
  readonly grpcStatus?: string;
  /** Percent-encoded, as it was sent. */
  readonly grpcMessage?: string;
}

/** Decodes the header blocks of one connection, in the order in which they arrive. */
export interface HeaderDecoder {
  /** @throws Error when the block is no HPACK. */
  decode(block: Buffer): AnswerFields;
}

/** What a server may use when the client says nothing about it (RFC 9113 §6.5.2, SETTINGS_HEADER_TABLE_SIZE). */
const defaultTableBytes = 4096;

/** A handful of different blocks is usual; grpc-message may make each one different. */
const maxRememberedBlocks = 1000;

/**
 * Creates an HPACK decoder that remembers blocks: the same bytes mean the same fields until the dynamic table changes,
 * so that almost every answer costs one hash look-up here instead of CPU that the server under test needs.
 *
 * @see RFC 7541 https://www.rfc-editor.org/rfc/rfc7541
 */
export function createHeaderDecoder(): HeaderDecoder {
  const table: HeaderField[] = [];
  const remembered = new Map<string, AnswerFields>();
  let tableBytes = 0;
  let maxTableBytes = defaultTableBytes;
  let tableChanged = false;

  const evictTo = (limit: number): void => {
    while (tableBytes > limit) {
      const oldest = table.pop();
      if (oldest === undefined) return;
      tableBytes -= fieldBytes(oldest);
      tableChanged = true;
    }
  };
  const insert = (field: HeaderField): void => {
    tableChanged = true;
    evictTo(Math.max(0, maxTableBytes - fieldBytes(field)));
    if (fieldBytes(field) > maxTableBytes) return;
    table.unshift(field);
    tableBytes += fieldBytes(field);
  };
  const resize = (bytes: number): void => {
    maxTableBytes = bytes;
    tableChanged = true;
    evictTo(bytes);
  };
  const lookUp = (index: number): HeaderField => {
    const field =
      index <= staticTable.length ? staticTable[index - 1] : table[index - 1 - staticTable.length];
    if (field === undefined) throw new Error(`a header block refers to field ${index}, which does not exist`);
    return field;
  };

  return {
    decode(block) {
      const bytes = block.toString('latin1');
      const known = remembered.get(bytes);
      if (known !== undefined) return known;
      tableChanged = false;
      const fields = pickFields(decodeBlock(block, { insert, resize, lookUp }));
      if (tableChanged) remembered.clear();
      else if (remembered.size < maxRememberedBlocks) remembered.set(bytes, fields);
      return fields;
    },
  };
}

/** Size as the table counts it (RFC 7541 §4.1). */
function fieldBytes([name, value]: HeaderField): number {
  return name.length + value.length + 32;
}

function pickFields(fields: readonly HeaderField[]): AnswerFields {
  const find = (name: string) => fields.find((field) => field[0] === name)?.[1];
  const httpStatus = find(':status');
  const grpcStatus = find('grpc-status');
  const grpcMessage = find('grpc-message');
  return {
    ...(httpStatus !== undefined && { httpStatus }),
    ...(grpcStatus !== undefined && { grpcStatus }),
    ...(grpcMessage !== undefined && { grpcMessage }),
  };
}

interface DynamicTable {
  insert(field: HeaderField): void;
  resize(bytes: number): void;
  lookUp(index: number): HeaderField;
}

/** The representations of RFC 7541 §6, told apart by their leading bits. */
function decodeBlock(block: Buffer, table: DynamicTable): HeaderField[] {
  const reader = createBlockReader(block);
  const fields: HeaderField[] = [];
  const literal = (index: number): HeaderField => [
    index === 0 ? reader.text() : table.lookUp(index)[0],
    reader.text(),
  ];
  while (!reader.atEnd()) {
    const first = reader.peek();
    if (first & 0x80) {
      fields.push(table.lookUp(reader.integer(7)));
    } else if (first & 0x40) {
      const field = literal(reader.integer(6));
      table.insert(field);
      fields.push(field);
    } else if (first & 0x20) {
      table.resize(reader.integer(5));
    } else {
      fields.push(literal(reader.integer(4)));
    }
  }
  return fields;
}

interface BlockReader {
  atEnd(): boolean;
  peek(): number;
  integer(prefixBits: number): number;
  text(): string;
}

function createBlockReader(block: Buffer): BlockReader {
  let position = 0;
  const next = (): number => {
    const byte = block[position++];
    if (byte === undefined) throw new Error('a header block ends too early');
    return byte;
  };
  const integer = (prefixBits: number): number => {
    const mask = (1 << prefixBits) - 1;
    let value = next() & mask;
    if (value < mask) return value;
    for (let shift = 0; ; shift += 7) {
      if (shift > 21) throw new Error('a header block has a number that is too large');
      const byte = next();
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  return {
    integer,
    atEnd: () => position >= block.length,
    peek: () => block[position] ?? 0,
    text() {
      const huffman = ((block[position] ?? 0) & 0x80) !== 0;
      const length = integer(7);
      if (position + length > block.length) throw new Error('a header block ends too early');
      const bytes = block.subarray(position, position + length);
      position += length;
      return huffman ? decodeHuffman(bytes) : bytes.toString('latin1');
    },
  };
}
