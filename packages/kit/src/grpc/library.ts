import { format } from 'node:util';
import { type MethodDefinition, setLogger } from '@grpc/grpc-js';
import type { Logger } from '../logger.ts';

/**
 * Sends the log of @grpc/grpc-js to our logger, instead of raw lines on standard error. The library
 * has one log per process: the last call counts.
 */
export function logGrpcLibrary(logger: Logger): void {
  setLogger({
    error: (...parts: unknown[]) => logger.error({ detail: format(...parts) }, 'from the gRPC library'),
    info: (...parts: unknown[]) => logger.info({ detail: format(...parts) }, 'from the gRPC library'),
    debug: (...parts: unknown[]) => logger.debug({ detail: format(...parts) }, 'from the gRPC library'),
  });
}

/** A unary method whose messages are bytes; its handlers decode them. */
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

/** Returns the bytes as a Buffer, without a copy. */
function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * The error details of @grpc/grpc-js without the heading of an empty note.
 */
export function trimDetails(details: string): string {
  return details.replace(/\s*Resolution note:\s*$/, '');
}
