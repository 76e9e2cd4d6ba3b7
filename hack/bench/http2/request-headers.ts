import { type HeaderField, staticTable } from '@tollgate/grpc-server/hpack/static-table';

/** Two forms of the same request headers. */
export interface RequestHeaderBlocks {
  /** For the first request of a connection: adds the fields to the server's dynamic table. */
  readonly first: Buffer;
  /** For all that follow: refers to them, a byte or two a field, as any gRPC client does. */
  readonly later: Buffer;
}

/** Index of the field that was added last; older ones follow (RFC 7541 §2.3.3). */
const newestIndex = staticTable.length + 1;

/**
 * Encodes the headers of a unary gRPC call with HPACK. The server must keep a dynamic table of at least 4096 bytes.
 *
 * @see RFC 7541 §6 https://www.rfc-editor.org/rfc/rfc7541#section-6
 */
export function encodeRequestHeaders(options: { path: string; authority: string }): RequestHeaderBlocks {
  const added: HeaderField[] = [
    [':path', options.path],
    [':authority', options.authority],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ['user-agent', 'tollgate-bench'],
  ];
  // Pseudo-header fields come first (RFC 9113 §8.3); these two are in the static table.
  const known = [indexed(fieldIndex(':method', 'POST')), indexed(fieldIndex(':scheme', 'http'))];
  return {
    first: Buffer.concat([...known, ...added.map(literalWithIndexing)]),
    later: Buffer.concat([...known, ...added.map((_, i) => indexed(newestIndex + added.length - 1 - i))]),
  };
}

function fieldIndex(name: string, value: string): number {
  return staticTable.findIndex((field) => field[0] === name && field[1] === value) + 1;
}

function indexed(index: number): Buffer {
  return Buffer.from([0x80 | index]);
}

function literalWithIndexing([name, value]: HeaderField): Buffer {
  return Buffer.concat([Buffer.from([0x40]), plainText(name), plainText(value)]);
}

function plainText(text: string): Buffer {
  // One length byte holds up to 126; longer paths and names do not occur here.
  if (text.length > 126) throw new Error(`a request header is too long: ${text}`);
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text, 'latin1')]);
}
