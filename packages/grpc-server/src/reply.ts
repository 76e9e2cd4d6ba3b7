import { Flag, FrameType, frameHeaderBytes, maxFrameBytes, writeFrameHeader } from './frames.ts';
import { encodeHeaders } from './hpack/encoder.ts';
import type { Output } from './output.ts';
import { Code, encodeMessage, type GrpcStatus } from './status.ts';

/** Bytes before each gRPC message: a flag and the length. */
export const messagePrefixBytes = 5;

/** What a server that takes gzip tells its clients. */
const acceptedEncodings = 'identity,gzip';

/** Response headers of every call that answers with a message. */
const responseHeaders = encodeHeaders([
  [':status', '200'],
  ['content-type', 'application/grpc'],
]);

/** Trailers of a call that succeeded. */
const okTrailers = encodeHeaders([['grpc-status', '0']]);

const headersFlags = Flag.END_HEADERS;
const trailersFlags = Flag.END_HEADERS | Flag.END_STREAM;

/** Size of a successful reply on the wire. */
function replyBytes(message: Uint8Array): number {
  return (
    3 * frameHeaderBytes + responseHeaders.length + messagePrefixBytes + message.length + okTrailers.length
  );
}

/** Whether a message fits into one DATA frame. */
export function fitsFrame(message: Uint8Array): boolean {
  return messagePrefixBytes + message.length <= maxFrameBytes;
}

/** Writes headers, message and trailers of a successful unary call in one go. */
export function writeReply(output: Output, streamId: number, message: Uint8Array): void {
  let at = output.reserve(replyBytes(message));
  const { buffer } = output;
  at = writeBlock(buffer, at, { streamId, flags: headersFlags, block: responseHeaders });
  const length = messagePrefixBytes + message.length;
  at = writeFrameHeader(buffer, at, { length, type: FrameType.DATA, flags: 0, streamId });
  buffer[at] = 0;
  buffer.writeUInt32BE(message.length, at + 1);
  buffer.set(message, at + messagePrefixBytes);
  writeBlock(buffer, at + length, { streamId, flags: trailersFlags, block: okTrailers });
}

function writeBlock(
  buffer: Buffer,
  at: number,
  { streamId, flags, block }: { readonly streamId: number; readonly flags: number; readonly block: Buffer },
): number {
  const length = block.length;
  const start = writeFrameHeader(buffer, at, { length, type: FrameType.HEADERS, flags, streamId });
  buffer.set(block, start);
  return start + length;
}

/** Writes the response headers of a call whose messages follow in DATA frames of their own. */
export function writeHeaders(output: Output, streamId: number, block: Buffer = responseHeaders): void {
  const at = output.reserve(frameHeaderBytes + block.length);
  writeBlock(output.buffer, at, { streamId, flags: headersFlags, block });
}

/** Writes a header block that ends the stream: trailers, or a whole reply without a message. */
export function writeLastHeaders(output: Output, streamId: number, block: Buffer): void {
  const at = output.reserve(frameHeaderBytes + block.length);
  writeBlock(output.buffer, at, { streamId, flags: trailersFlags, block });
}

/** A message with its prefix. */
export function prefixMessage(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(messagePrefixBytes + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, messagePrefixBytes);
  return bytes;
}

/** Trailers of a call whose headers have been sent. */
export function trailersBlock(status: GrpcStatus): Buffer {
  if (status.code === Code.OK) return okTrailers;
  return encodeHeaders([
    ['grpc-status', String(status.code)],
    ['grpc-message', encodeMessage(status.message)],
  ]);
}

/** Headers of a call that ends without a message ("Trailers-Only"). */
export function trailersOnlyBlock(status: GrpcStatus): Buffer {
  return encodeHeaders([
    [':status', '200'],
    ['content-type', 'application/grpc'],
    ['grpc-status', String(status.code)],
    ['grpc-message', encodeMessage(status.message)],
    ...(status.code === Code.UNIMPLEMENTED ? [['grpc-accept-encoding', acceptedEncodings] as const] : []),
  ]);
}

/** Headers of a reply to a request that is not gRPC. */
export function plainHeadersBlock(httpStatus: number, bodyBytes: number): Buffer {
  return encodeHeaders([
    [':status', String(httpStatus)],
    ['content-type', 'text/plain; charset=utf-8'],
    ['content-length', String(bodyBytes)],
    ...(httpStatus === 405 ? [['allow', 'POST'] as const] : []),
  ]);
}
