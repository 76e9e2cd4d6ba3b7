import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { PendingHandshakes } from '@tollgate/grpc-server/pending-handshakes';
import { getErrorMessage } from './errors.ts';

/** Address of an HTTP server. */
export interface HttpServerOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** Shares the port with other processes. Default false. */
  readonly reusePort?: boolean;
}

export interface HttpServerLimits {
  /**
   * A new connection beyond it closes another one, an idle one if there is any: idle connections
   * and slow readers must not block others, such as probes. Default: no bound.
   */
  readonly maxConnections?: number;
}

/** The part of an application, such as Fastify's, that a server needs. */
export interface HttpApplication {
  readonly server: Server;
  listen(options: HttpServerOptions): PromiseLike<unknown>;
  close(): PromiseLike<unknown>;
}

/** Starts and stops an HTTP application. */
export class HttpServer {
  readonly #app: HttpApplication;
  readonly #options: HttpServerOptions;
  readonly #connections: HttpConnections;

  constructor(app: HttpApplication, options: HttpServerOptions, limits: HttpServerLimits = {}) {
    this.#app = app;
    this.#options = options;
    this.#connections = new HttpConnections(app.server, limits);
  }

  /** Listens; resolves with the port. Rejects when the address is taken. */
  async start(): Promise<number> {
    const { port } = this.#options;
    await this.#app.listen({ ...this.#options });
    const address = this.#app.server.address();
    return typeof address === 'object' && address !== null ? address.port : port;
  }

  /** Serves a connection that another process accepted; it need not listen for that. */
  accept(socket: Socket): void {
    this.#app.server.emit('connection', socket);
  }

  /**
   * Sends `Connection: close` with every response from now on, so that clients move to other
   * replicas before the stop.
   */
  closeAfterAnswers(): void {
    this.#connections.closeAfterAnswers();
  }

  /**
   * Refuses new connections, closes those without a request and completes requests in flight; those
   * left when `signal` aborts are cut off.
   */
  async stop(signal: AbortSignal): Promise<void> {
    const cut = (): void => this.#app.server.closeAllConnections();
    signal.addEventListener('abort', cut, { once: true });
    this.#connections.drain();
    await this.#app.close();
    signal.removeEventListener('abort', cut);
  }
}

/**
 * The connections of a server. Node's `closeIdleConnections` spares connections that never sent a
 * request, which a load balancer may open ahead of time, and lets responses under way promise a
 * connection that stays open.
 */
class HttpConnections {
  readonly #responses = new Map<Socket, Set<ServerResponse>>();
  readonly #handshakes: PendingHandshakes<Socket> | undefined;
  readonly #maxConnections: number;
  #closing: boolean = false;
  #draining: boolean = false;

  constructor(server: Server, { maxConnections = Number.POSITIVE_INFINITY }: HttpServerLimits) {
    this.#maxConnections = maxConnections;
    const isTls = server instanceof TlsServer;
    // Before a connection is added. Node's own `maxConnections` closes the new one.
    server.prependListener('connection', () => this.#makeSpace());
    this.#handshakes = isTls ? new PendingHandshakes(server, (socket) => socket) : undefined;
    // With TLS, requests refer to the socket inside the tunnel.
    server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => this.#add(socket));
    // Before the application's own listener, which may respond at once.
    server.prependListener('request', ({ socket }, response: ServerResponse) =>
      this.#track(socket, response),
    );
  }

  /**
   * Sends `Connection: close` with every response; new connections and requests are still accepted.
   */
  closeAfterAnswers(): void {
    this.#closing = true;
    // Of pipelined requests the last one: a connection ends after the first response with this
    // header.
    for (const responses of this.#responses.values()) {
      const last = [...responses].at(-1);
      if (last !== undefined) last.shouldKeepAlive = false;
    }
  }

  /** Closes connections without a request at once, the others after their response. */
  drain(): void {
    this.#draining = true;
    this.closeAfterAnswers();
    for (const socket of this.#handshakes?.values() ?? []) socket.destroy();
    for (const [socket, responses] of this.#responses) if (responses.size === 0) socket.destroy();
  }

  /** Closes a connection at the bound: the oldest idle one, else an unfinished handshake. */
  #makeSpace(): void {
    if (this.#responses.size + (this.#handshakes?.size ?? 0) < this.#maxConnections) return;
    const [idle] = [...this.#responses.keys()].filter((socket) => this.#responses.get(socket)?.size === 0);
    const closed = idle ?? this.#handshakes?.takeOldest() ?? this.#responses.keys().next().value;
    if (closed === undefined) return;
    // At once: its 'close' comes after the next connection.
    this.#responses.delete(closed);
    closed.destroy();
  }

  #add(socket: Socket): void {
    this.#handshakes?.take(socket);
    if (this.#draining) {
      socket.destroy();
      return;
    }
    this.#responses.set(socket, new Set());
    socket.once('close', () => this.#responses.delete(socket));
  }

  #track(socket: Socket, response: ServerResponse): void {
    const responses = this.#responses.get(socket);
    if (responses === undefined) return;
    responses.add(response);
    if (this.#closing) response.shouldKeepAlive = false;
    response.once('close', () => {
      responses.delete(response);
      // A response that had begun before the stop could not announce that the connection ends.
      if (this.#draining && responses.size === 0) socket.destroySoon();
    });
  }
}

/** Names of the settings that give a server its address. */
export interface ListenSettings {
  readonly host: string;
  readonly port: string;
}

/**
 * Waits for a server to listen. An error, most often a port in use, names the settings to correct.
 *
 * @throws Error with the server's error as its cause.
 */
export async function nameListenSettings<Started>(
  listening: Promise<Started>,
  { host, port }: ListenSettings,
): Promise<Started> {
  try {
    return await listening;
  } catch (cause) {
    const reason = getErrorMessage(cause);
    throw new Error(`cannot listen on the address set by ${host} and ${port}: ${reason}`, { cause });
  }
}
