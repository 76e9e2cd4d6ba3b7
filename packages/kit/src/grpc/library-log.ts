import { format } from 'node:util';
import { setLogger } from '@grpc/grpc-js';
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
