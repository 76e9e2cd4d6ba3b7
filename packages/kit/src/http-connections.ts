import {
  maxHeaderSize as defaultMaxHeaderBytes,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { BufferAccount, BufferHolder, ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { defaultLimits } from '@tollgate/grpc-server/limits';
import { PendingHandshakes } from '@tollgate/grpc-server/pending-handshakes';
import { clientBuffersFull } from './client-buffers.ts';

export interface HttpServerLimits {
  /**
   * A new connection beyond it closes another one, an idle one if there is any: idle connections
   * and slow readers must not block others, such as probes. Default 10,000.
   */
  readonly maxConnections?: number;
  /** Shared by all servers of a process. Without it, only the size of each request is bounded. */
  readonly buffers?: ClientBuffers | undefined;
}

/** How often bytes of incomplete heads and small bodies are counted. */
const countMs = 100;

/** Larger bodies are counted with each piece that arrives. */
const smallBodyBytes = 16 * 1024;

const tooManyIncomplete = 'incomplete requests take too much memory, retry later\n';
const unavailable = [
  'HTTP/1.1 503 Service Unavailable',
  'Connection: close',
  'Content-Type: text/plain; charset=utf-8',
  `Content-Length: ${tooManyIncomplete.length}`,
  'Retry-After: 1',
  '',
  tooManyIncomplete,
].join('\r\n');

/**
 * The connections of a server. Node's `closeIdleConnections` spares connections that never sent a
 * request, which a load balancer may open ahead of time, and lets responses under way promise a
 * connection that stays open.
 */
export class HttpConnections {
  readonly #connections = new Map<Socket, HttpConnection>();
  readonly #handshakes: PendingHandshakes<Socket> | undefined;
  readonly #maxConnections: number;
  readonly #buffers: ClientBuffers | undefined;
  readonly #maxHeadBytes: number;
  #closing: boolean = false;
  #draining: boolean = false;

  constructor(server: Server, { maxConnections, buffers }: HttpServerLimits) {
    this.#maxConnections = maxConnections ?? defaultLimits.maxConnections;
    this.#buffers = buffers;
    this.#maxHeadBytes = getMaxHeaderSize(server);
    const isTls = server instanceof TlsServer;
    // Space is made before a connection is added. Node's own `maxConnections` closes the new one.
    server.prependListener('connection', () => this.#makeSpace());
    this.#handshakes = isTls ? new PendingHandshakes(server, (socket) => socket) : undefined;
    // With TLS, requests refer to the socket inside the tunnel.
    server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => this.#add(socket));
    // This listener precedes the application's own, which may respond at once.
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) =>
      this.#track(request, response),
    );
    if (buffers === undefined) return;
    const timer = setInterval(() => this.#count(), countMs).unref();
    server.once('close', () => clearInterval(timer));
  }

  /**
   * Sends `Connection: close` with every response; new connections and requests are still accepted.
   */
  closeAfterAnswers(): void {
    this.#closing = true;
    // The last one of pipelined requests: a connection ends after the first response with this
    // header.
    for (const { responses } of this.#connections.values()) {
      const last = [...responses].at(-1);
      if (last !== undefined) last.shouldKeepAlive = false;
    }
  }

  /** Closes connections without a request at once, the others after their response. */
  drain(): void {
    this.#draining = true;
    this.closeAfterAnswers();
    for (const socket of this.#handshakes?.values() ?? []) socket.destroy();
    for (const [socket, { responses }] of this.#connections) if (responses.size === 0) socket.destroy();
  }

  /** Closes a connection at the bound: the oldest idle one, else an unfinished handshake. */
  #makeSpace(): void {
    if (this.#connections.size + (this.#handshakes?.size ?? 0) < this.#maxConnections) return;
    const closed =
      this.#findIdle() ?? this.#handshakes?.takeOldest() ?? this.#connections.keys().next().value;
    if (closed === undefined) return;
    // It is removed at once: its 'close' comes after the next connection.
    this.#connections.delete(closed);
    closed.destroy();
  }

  #findIdle(): Socket | undefined {
    for (const [socket, { responses }] of this.#connections) if (responses.size === 0) return socket;
    return undefined;
  }

  #add(socket: Socket): void {
    this.#handshakes?.take(socket);
    if (this.#draining) {
      socket.destroy();
      return;
    }
    const connection = new HttpConnection(socket, this.#buffers, this.#maxHeadBytes);
    this.#connections.set(socket, connection);
    socket.once('close', () => {
      this.#connections.delete(socket);
      connection.close();
    });
  }

  #track(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(request.socket);
    if (connection === undefined) return;
    const { responses } = connection;
    connection.begin(request, response);
    if (this.#closing) response.shouldKeepAlive = false;
    response.once('close', () => {
      connection.end(response);
      // A response that had begun before the stop could not announce that the connection ends.
      if (this.#draining && responses.size === 0) request.socket.destroySoon();
    });
  }

  #count(): void {
    for (const connection of this.#connections.values()) connection.count();
  }
}

/** The requests of a connection that have no complete response, and what they hold. */
class HttpConnection implements BufferHolder {
  readonly protocol = 'http';
  readonly address: string;
  readonly responses = new Set<ServerResponse>();
  readonly #socket: Socket;
  readonly #account: BufferAccount | undefined;
  readonly #maxHeadBytes: number;
  /** The request that arrived last. */
  #request: IncomingMessage | undefined;
  /** Bytes that the socket had read when the last request was complete. */
  #completedBytes = 0;

  constructor(socket: Socket, buffers: ClientBuffers | undefined, maxHeadBytes: number) {
    this.#socket = socket;
    this.#maxHeadBytes = maxHeadBytes;
    this.address = socket.remoteAddress ?? '';
    this.#account = buffers?.open(this);
  }

  begin(request: IncomingMessage, response: ServerResponse): void {
    this.responses.add(response);
    this.#request = request;
    if (this.#account === undefined || request.complete) return;
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
    if (length === undefined ? encoding === undefined : Number(length) <= smallBodyBytes) return;
    // Not `on`, which would start the flow of data.
    request.prependListener('data', () => this.count());
    request.once('end', () => this.count());
  }

  end(response: ServerResponse): void {
    this.responses.delete(response);
    this.#complete();
  }

  /** Counts what the connection holds. What arrives after a response is not kept. */
  count(): void {
    if (this.#account === undefined || this.#socket.destroyed) return;
    if (this.responses.size > 0 && this.#request?.complete === true) this.#complete();
    const arrived = this.#socket.bytesRead - this.#completedBytes;
    this.#account.set(this.responses.size > 0 ? arrived : Math.min(arrived, this.#maxHeadBytes));
  }

  #complete(): void {
    this.#completedBytes = this.#socket.bytesRead;
    this.#account?.set(0);
  }

  /** As Node does when a request takes too long, without the application. */
  shed(): void {
    const [response, ...others] = this.responses;
    if (others.length === 0 && response?.headersSent !== true) this.#socket.write(unavailable);
    this.#socket.destroy();
    // The application frees the body; it would notice the end of the socket late.
    if (this.#request?.complete === false) this.#request.destroy(clientBuffersFull());
    this.#account?.set(0);
  }

  close(): void {
    this.#account?.close();
  }
}

/** Node does not export the option of a server. */
function getMaxHeaderSize(server: Server): number {
  const { maxHeaderSize } = server as Server & { readonly maxHeaderSize?: number };
  return maxHeaderSize ?? defaultMaxHeaderBytes;
}
