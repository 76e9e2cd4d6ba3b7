import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { PendingHandshakes } from '@tollgate/grpc-server/pending-handshakes';

/** The connections of an HTTP server, for a stop that waits for requests and for nothing else. */
interface HttpConnections {
  /** From now on every answer says `Connection: close`; new connections and requests are taken as before. */
  closeAfterAnswers(): void;
  /** Closes connections without a request at once, the others after their answer, which says `Connection: close`. */
  drain(): void;
}

/**
 * Follows the connections of a server. Node's own `closeIdleConnections` spares those that never sent a request, which a load
 * balancer may open ahead of time, and lets answers that are under way promise a connection that stays.
 */
function followConnections(server: Server): HttpConnections {
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

/** Where an HTTP server listens. */
export interface HttpServerOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

/** An HTTP server. */
export interface HttpServer {
  /** Listens; resolves with the port. Rejects when the address is taken. */
  start(): Promise<number>;
  /** Says `Connection: close` in every answer from now on, so that clients with open connections go elsewhere before the stop. */
  closeAfterAnswers(): void;
  /**
   * Refuses new connections, closes those without a request and lets requests in flight end; those left when `signal` aborts
   * are cut off.
   */
  stop(signal: AbortSignal): Promise<void>;
}

/** What is needed of a Fastify application. */
export interface HttpApplication {
  readonly server: Server;
  listen(options: HttpServerOptions): PromiseLike<unknown>;
  close(): PromiseLike<unknown>;
}

/** Gives a Fastify application the shape of a lifecycle component. */
export function createHttpServer(app: HttpApplication, { host, port }: HttpServerOptions): HttpServer {
  const connections = followConnections(app.server);
  return {
    closeAfterAnswers: connections.closeAfterAnswers,
    async start() {
      await app.listen({ host, port });
      const address = app.server.address();
      return typeof address === 'object' && address !== null ? address.port : port;
    },
    async stop(signal) {
      const cut = (): void => app.server.closeAllConnections();
      signal.addEventListener('abort', cut, { once: true });
      connections.drain();
      await app.close();
      signal.removeEventListener('abort', cut);
    },
  };
}

/** Which settings say where a server listens. */
export interface ListenSettings {
  readonly host: string;
  readonly port: string;
}

/**
 * Has a server listen; when it cannot, because another process has the port above all, the settings to look at are named.
 *
 * @throws Error with that of the server as its cause.
 */
export async function nameListenSettings<Started>(
  listening: Promise<Started>,
  { host, port }: ListenSettings,
): Promise<Started> {
  try {
    return await listening;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`cannot listen where ${host} and ${port} say: ${reason}`, { cause });
  }
}
