import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { PendingHandshakes } from '@tollgate/grpc-server/pending-handshakes';

/** The connections of an HTTP server, for a stop that waits for requests and for nothing else. */
export interface HttpConnections {
  /** From now on every answer says `Connection: close`; new connections and requests are taken as before. */
  closeAfterAnswers(): void;
  /** Closes connections without a request at once, the others after their answer, which says `Connection: close`. */
  drain(): void;
}

/**
 * Follows the connections of a server. Node's own `closeIdleConnections` spares those that never sent a request, which a load
 * balancer may open ahead of time, and lets answers that are under way promise a connection that stays.
 */
export function followConnections(server: Server): HttpConnections {
  const answersOf = new Map<Socket, Set<ServerResponse>>();
  let closing = false;
  let draining = false;

  const handshakes =
    server instanceof TlsServer ? new PendingHandshakes(server, (socket) => socket) : undefined;
  // With TLS requests name the socket inside the tunnel.
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    handshakes?.take(socket);
    if (draining) {
      socket.destroy();
      return;
    }
    answersOf.set(socket, new Set());
    socket.once('close', () => answersOf.delete(socket));
  });
  // Before the application's own listener, which may answer at once.
  server.prependListener('request', ({ socket }, answer: ServerResponse) => {
    const answers = answersOf.get(socket);
    if (answers === undefined) return;
    answers.add(answer);
    if (closing) answer.shouldKeepAlive = false;
    answer.once('close', () => {
      answers.delete(answer);
      // An answer that had begun before the stop could not say that the connection ends.
      if (draining && answers.size === 0) socket.destroySoon();
    });
  });

  function closeAfterAnswers(): void {
    closing = true;
    // Of pipelined requests the last one: a connection ends after the first answer that says so.
    for (const answers of answersOf.values()) {
      const last = [...answers].at(-1);
      if (last !== undefined) last.shouldKeepAlive = false;
    }
  }

  return {
    closeAfterAnswers,
    drain() {
      draining = true;
      closeAfterAnswers();
      for (const socket of handshakes?.values() ?? []) socket.destroy();
      for (const [socket, answers] of answersOf) if (answers.size === 0) socket.destroy();
    },
  };
}
