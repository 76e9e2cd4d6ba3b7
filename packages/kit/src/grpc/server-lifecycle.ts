import type { Http2SecureServer } from 'node:http2';
import type { Server, ServerCredentials } from '@grpc/grpc-js';
import { type HandshakeReport, reportHandshakes } from '../tls-handshakes.ts';

/**
 * Listens on `host:port` or `unix:/path`; resolves with the port (0 on a unix socket). Rejects when the address is taken.
 *
 * @param handshakes where failed TLS handshakes are reported; has no effect on a listener without TLS.
 */
export async function bindServer(
  server: Server,
  address: string,
  credentials: ServerCredentials,
  handshakes?: HandshakeReport,
): Promise<number> {
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(address, credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  if (handshakes) for (const listener of http2Servers(server)) reportHandshakes(listener, handshakes);
  return port;
}

/** The listeners of a server, which grpc-js keeps to itself: it drops failed handshakes without an event or a count. */
function http2Servers(server: Server): Iterable<Http2SecureServer> {
  // Private in the declaration; the test of failed handshakes notices when the field has gone.
  const { http2Servers } = server as unknown as { http2Servers?: ReadonlyMap<Http2SecureServer, unknown> };
  return http2Servers?.keys() ?? [];
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
