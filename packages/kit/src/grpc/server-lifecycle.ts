import type { Server, ServerCredentials } from '@grpc/grpc-js';

/** Listens on `host:port` or `unix:/path`; resolves with the port (0 on a unix socket). Rejects when the address is taken. */
export function bindServer(server: Server, address: string, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => (error === null ? resolve(port) : reject(error)));
  });
}

/**
 * Sends GOAWAY and waits for the calls in flight; those left when `signal` aborts, or has aborted already, are cut off.
 *
 * @param endStreams ends what would go on for ever. Called after the GOAWAY, so that no client comes back on the same connection.
 */
export function shutDownServer(server: Server, signal: AbortSignal, endStreams: () => void): Promise<void> {
  return new Promise((resolve) => {
    const force = (): void => server.forceShutdown();
    signal.addEventListener('abort', force, { once: true });
    server.tryShutdown(() => {
      signal.removeEventListener('abort', force);
      resolve();
    });
    endStreams();
    if (signal.aborted) force();
  });
}
