import { once } from 'node:events';
import type { Http2SecureServer, Http2Server, ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { Server, ServerCredentials } from '@grpc/grpc-js';
import { PendingHandshakes } from '@tollgate/grpc-server/pending-handshakes';
import type { Logger } from '../logger.ts';
import { type HandshakeReport, reportHandshakes } from '../tls.ts';
import { type ConnectionLimits, type ServerConnection, ServerConnections } from './connections.ts';

/**
 * Reports the connections, sessions and calls of an HTTP/2 server to `connections`. Call it before
 * the first connection.
 */
function followConnections(server: Http2Server | Http2SecureServer, connections: ServerConnections): void {
  let accepted: ServerConnection | undefined;
  const handshakes =
    server instanceof TlsServer
      ? new PendingHandshakes(server, (socket) => connections.add(socket))
      : undefined;
  // This runs before the server's own listener. With TLS, the socket inside the tunnel replaces the
  // accepted one.
  const accepting = server instanceof TlsServer ? 'secureConnection' : 'connection';
  server.prependListener(accepting, (socket: Socket) => {
    const handshake = handshakes?.take(socket);
    if (handshake !== undefined) connections.remove(handshake);
    accepted = connections.add(socket, handshake?.acceptedMs);
  });

  // Emitted by the server's own listener of the same event, thus for the connection accepted last.
  server.on('session', (session: ServerHttp2Session) => {
    if (accepted === undefined) return;
    followSession(session, accepted, connections);
    accepted = undefined;
  });
}

function followSession(
  session: ServerHttp2Session,
  connection: ServerConnection,
  connections: ServerConnections,
): void {
  connection.close = () => session.close();
  // The client's SETTINGS end its connection preface. @see RFC 9113 §3.4
  session.once('remoteSettings', () => connections.prefaceReceived(connection));
  session.on('stream', (stream) => {
    connections.callStarted(connection);
    stream.once('close', () => connections.callEnded(connection));
  });
}

/**
 * Default limit of connections per port. Envoy opens one per worker thread; an idle one takes about
 * 26 kB.
 */
export const defaultMaxConnections = 10_000;

/**
 * A client sends its preface with its first bytes; a TLS handshake takes a few more round trips.
 */
const prefaceTimeoutMs = 10_000;

/**
 * The port of a gRPC server, with limits on its connections and on its stop that grpc-js does not
 * have.
 */
export class GrpcListener {
  readonly #server: Server;
  readonly #connections: ServerConnections;
  #closed: Promise<unknown> = Promise.resolve();

  constructor(server: Server, logger: Logger, limits: Partial<ConnectionLimits> = {}) {
    this.#server = server;
    this.#connections = new ServerConnections(
      { maxConnections: defaultMaxConnections, prefaceTimeoutMs, ...limits },
      logger,
    );
  }

  /**
   * Listens on `host:port` or `unix:/path`; resolves with the port (0 on a unix socket). Rejects
   * when the address is taken.
   *
   * @param handshakes reports failed TLS handshakes; no effect without TLS.
   */
  async listen(
    address: string,
    credentials: ServerCredentials,
    handshakes?: HandshakeReport,
  ): Promise<number> {
    const port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync(address, credentials, (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    const servers = findHttp2Servers(this.#server);
    for (const server of servers) {
      followConnections(server, this.#connections);
      if (handshakes && server instanceof TlsServer) reportHandshakes(server, handshakes);
    }
    this.#closed = Promise.all(servers.map((server) => once(server, 'close')));
    return port;
  }

  /**
   * Sends GOAWAY, closes idle connections and waits for the calls in flight; those left when
   * `signal` aborts, or has already aborted, are cut off.
   *
   * @param endStreams ends long-lived streams. Called after the GOAWAY, so that no client reopens
   * one on the same connection.
   */
  async shutDown(signal: AbortSignal, endStreams: () => void): Promise<void> {
    const force = (): void => {
      this.#server.forceShutdown();
      this.#connections.destroy();
    };
    signal.addEventListener('abort', force, { once: true });
    // Its callback is never called when a session was already ending.
    this.#server.tryShutdown(() => undefined);
    endStreams();
    this.#connections.drain();
    if (signal.aborted) force();
    await this.#closed;
    signal.removeEventListener('abort', force);
  }
}

/** The HTTP/2 servers of a grpc-js server, which hides them and has no event for a connection. */
function findHttp2Servers(server: Server): readonly (Http2Server | Http2SecureServer)[] {
  const { http2Servers } = server as unknown as { readonly http2Servers?: unknown };
  if (!(http2Servers instanceof Map)) {
    throw new TypeError('this version of @grpc/grpc-js keeps its HTTP/2 servers elsewhere');
  }
  return [...http2Servers.keys()];
}
