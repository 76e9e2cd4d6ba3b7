import { format } from 'node:util';
import { type MethodDefinition, setLogger } from '@grpc/grpc-js';
import type { Logger } from '../logger.ts';

/**
 * Gives @grpc/grpc-js our log at the levels of its own, instead of raw lines on standard error that no reader of JSON
 * understands. The library has one log for the whole process, all its servers and clients: the last call counts.
 */
export function logGrpcLibrary(logger: Logger): void {
  setLogger({
    error: (...parts: unknown[]) => logger.error({ detail: format(...parts) }, 'told by the gRPC library'),
    info: (...parts: unknown[]) => logger.info({ detail: format(...parts) }, 'told by the gRPC library'),
    debug: (...parts: unknown[]) => logger.debug({ detail: format(...parts) }, 'told by the gRPC library'),
  });
}

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

/**
 * What went wrong with a call, in the words of @grpc/grpc-js, without the heading of a note that it has left empty.
 */
export function trimDetails(details: string): string {
  return details.replace(/\s*Resolution note:\s*$/, '');
}
