import type { Http2SecureServer, Http2Server, ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { PendingHandshakes } from '@tollgate/grpc-server/pending-handshakes';
import type { ServerConnection, ServerConnections } from '../server-connections.ts';

/** Reports the connections, sessions and calls of an HTTP/2 server to `connections`. Call it before the first connection. */
export function followConnections(
  server: Http2Server | Http2SecureServer,
  connections: ServerConnections,
): void {
  let accepted: ServerConnection | undefined;
  const handshakes =
    server instanceof TlsServer
      ? new PendingHandshakes(server, (socket) => connections.add(socket))
      : undefined;
  // Before the server's own listener. With TLS the socket inside the tunnel takes the place of the accepted one.
  const accepting = server instanceof TlsServer ? 'secureConnection' : 'connection';
  server.prependListener(accepting, (socket: Socket) => {
    const handshake = handshakes?.take(socket);
    if (handshake !== undefined) connections.remove(handshake);
    accepted = connections.add(socket, handshake?.acceptedMs);
  });

  // Emitted by the server's own listener to the same event, thus for the connection accepted last.
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
