import type { Http2SecureServer, Http2Server, ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { ServerConnection, ServerConnections } from '../server-connections.ts';

/** Reports the connections, sessions and calls of an HTTP/2 server to `connections`. Call it before the first connection. */
export function followConnections(
  server: Http2Server | Http2SecureServer,
  connections: ServerConnections,
): void {
  let accepted: ServerConnection | undefined;
  const startedMs = server instanceof TlsServer ? followHandshakes(server, connections) : () => undefined;
  // Before the server's own listener. With TLS the socket inside the tunnel takes the place of the accepted one.
  const accepting = server instanceof TlsServer ? 'secureConnection' : 'connection';
  server.prependListener(accepting, (socket: Socket) => {
    accepted = connections.add(socket, startedMs(socket));
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

/**
 * Follows sockets until their TLS handshake is over. Returns a function that ends this for one of them and answers when it
 * was accepted. Sockets of a unix path have no address by which to find them again: they are followed after the handshake.
 */
function followHandshakes(
  server: TlsServer,
  connections: ServerConnections,
): (socket: Socket) => number | undefined {
  const handshakes = new Map<string, ServerConnection>();
  server.on('connection', (socket: Socket) => {
    const address = addressOf(socket);
    if (address === undefined) return;
    handshakes.set(address, connections.add(socket));
    socket.once('close', () => handshakes.delete(address));
  });
  return (socket) => {
    const handshake = handshakes.get(addressOf(socket) ?? '');
    if (handshake === undefined) return undefined;
    connections.remove(handshake);
    return handshake.acceptedMs;
  };
}

function addressOf({ remoteAddress, remotePort }: Socket): string | undefined {
  return remotePort === undefined ? undefined : `${remoteAddress} ${remotePort}`;
}
