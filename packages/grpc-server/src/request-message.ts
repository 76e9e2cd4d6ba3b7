import { gunzipSync } from 'node:zlib';
import { messagePrefixBytes } from './reply.ts';
import { Code, GrpcStatus } from './status.ts';

/**
 * Reads the one message of a unary request from the body of its stream.
 *
 * @returns the message's bytes, a view of `body` unless it was compressed, or the status that the
 * call ends with.
 */
export function readRequestMessage(
  body: Buffer,
  { encoding, maxBytes }: { readonly encoding: string; readonly maxBytes: number },
): Buffer | GrpcStatus {
  if (body.length < messagePrefixBytes)
    return new GrpcStatus(Code.INTERNAL, 'request has no complete message');
  const length = body.readUInt32BE(1);
  if (length > maxBytes) return tooLarge(maxBytes);
  const end = messagePrefixBytes + length;
  if (body.length < end) return new GrpcStatus(Code.INTERNAL, 'request has no complete message');
  if (body.length > end) {
    return new GrpcStatus(Code.UNIMPLEMENTED, 'a unary request has exactly one message');
  }
  const message = body.subarray(messagePrefixBytes, end);
  const compressed = body[0] ?? 0;
  if (compressed === 0) return message;
  if (compressed !== 1) return new GrpcStatus(Code.INTERNAL, `invalid compressed flag ${compressed}`);
  if (encoding !== 'gzip') {
    return new GrpcStatus(Code.INTERNAL, 'compressed flag is set, but grpc-encoding names no compression');
  }
  return decompress(message, maxBytes);
}

function decompress(message: Buffer, maxBytes: number): Buffer | GrpcStatus {
  try {
    // The bound ends a decompression bomb before it takes memory.
    return gunzipSync(message, { maxOutputLength: maxBytes });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ERR_BUFFER_TOO_LARGE') return tooLarge(maxBytes);
    return new GrpcStatus(Code.INTERNAL, 'the message is not valid gzip');
  }
}

/** The status of a request that exceeds the bound on messages. */
export function tooLarge(maxBytes: number): GrpcStatus {
  return new GrpcStatus(Code.RESOURCE_EXHAUSTED, `request message exceeds ${maxBytes} bytes`);
}
