import { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { defineErrors, grpcStatus } from './errors.ts';
import { FailureLog, type Logger } from './logger.ts';

interface ClientBufferOptions {
  readonly maxBytes: number;
  readonly logger: Logger;
  /** Counts requests and connections that were ended, by protocol. */
  readonly onShed: (protocol: 'grpc' | 'http') => void;
}

/** Why requests end when clients hold too much. */
export const { client_buffers_full: clientBuffersFull } = defineErrors({
  client_buffers_full: {
    httpStatus: 503,
    grpcStatus: grpcStatus.resourceExhausted,
    message: 'incomplete requests and unread replies take too much memory',
  },
});

/** The budget of a process for what its clients make it hold. Logs when it is used up. */
export function createClientBuffers({ maxBytes, logger, onShed }: ClientBufferOptions): ClientBuffers {
  const failures = new FailureLog({ logger, message: 'client request ended' });
  return new ClientBuffers({
    maxBytes,
    onShed({ protocol, address }) {
      onShed(protocol);
      failures.log(clientBuffersFull(), { protocol, peer: address });
    },
  });
}
