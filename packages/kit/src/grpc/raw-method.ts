import type { MethodDefinition } from '@grpc/grpc-js';

/** A unary method whose messages the server passes on as bytes: decoding belongs to the handlers. */
export function unaryMethod(path: string): MethodDefinition<Uint8Array, Uint8Array> {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: toBuffer,
    requestDeserialize: (bytes) => bytes,
    responseSerialize: toBuffer,
    responseDeserialize: (bytes) => bytes,
  };
}

/** A method with a stream of messages both ways, whose messages the server passes on as bytes. */
export function bidiStreamingMethod(path: string): MethodDefinition<Uint8Array, Uint8Array> {
  return { ...unaryMethod(path), requestStream: true, responseStream: true };
}

/** The same bytes as a Buffer, without a copy. */
function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
