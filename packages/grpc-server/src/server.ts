import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import type { Methods, Peer } from './call.ts';
import { ClientBuffers } from './client-buffers.ts';
import { Connection, type ConnectionHost } from './connection.ts';
import { defaultLimits, type Limits } from './limits.ts';
import { FlushQueue } from './output.ts';
import { PendingHandshakes } from './pending-handshakes.ts';
import { Code, GrpcStatus } from './status.ts';

/** How long connections live and how their end is noticed; 0 switches each off. */
export interface ConnectionTimes {
  /**
   * Age at which a connection is drained, give or take a tenth, so that clients do not come back
   * all at once.
   */
  readonly maxAgeMs: number;
  /** How long its calls may go on after that. */
  readonly maxAgeGraceMs: number;
  /**
   * A connection without traffic gets a PING after that time, and is cut when the same time passes
   * without an answer.
   */
  readonly keepaliveMs: number;
}

/** Parts of a server. */
export interface ServerOptions {
  readonly methods: Methods;
  readonly limits?: Partial<Limits>;
  /** Shared by all servers of a process. Default: a budget of its own. */
  readonly buffers?: ClientBuffers | undefined;
  readonly times?: Partial<ConnectionTimes>;
  /** TLS, with ALPN `h2`; set `requestCert` and `ca` for mutual TLS. Plaintext without it. */
  readonly tls?: TlsOptions;
  /** Why a peer may not call: its calls end with UNAUTHENTICATED and this text. */
  readonly refusal?: (peer: Peer) => string | undefined;
  /** The status of what a handler threw; by default UNKNOWN without details. Log it here. */
  readonly toStatus?: (error: unknown, path: string) => GrpcStatus;
  /** A client broke the protocol or a limit, and its connection was ended. */
  readonly onViolation?: (code: number, reason: string, peer: Peer) => void;
  /** An unexpected error ended a connection. Thrown as an uncaught exception by default. */
  readonly onInternalError?: (error: unknown) => void;
}

/** Where a server listens. */
export type ListenAddress =
  | {
      readonly host: string;
      readonly port: number;
      /** Several processes listen, and the kernel spreads connections over them (SO_REUSEPORT). */
      readonly reusePort?: boolean;
    }
  | { readonly path: string };

interface ConnectionAge {
  readonly drainAtMs: number;
  drainedMs: number | undefined;
  pingedMs: number;
}

/** How often deadlines, ages and stalls are looked at. */
const sweepMs = 100;

/** A client that does not answer the PING of a drain gets its last GOAWAY after that time. */
const drainPingMs = 500;

/** A gRPC server of unary calls over HTTP/2. */
export class GrpcServer {
  readonly #host: ConnectionHost;
  readonly #times: ConnectionTimes;
  /** The socket server, for events such as `tlsClientError`. */
  readonly listener: NetServer;
  readonly #connections = new Map<Connection, ConnectionAge>();
  /** Sockets whose TLS handshake is not over, by the address of the client. */
  #handshakes: PendingHandshakes | undefined;
  #sweeper: NodeJS.Timeout | undefined;
  #drained: (() => void) | undefined;

  constructor(options: ServerOptions) {
    this.#host = {
      limits: { ...defaultLimits, ...options.limits },
      buffers: options.buffers ?? new ClientBuffers(),
      methods: options.methods,
      flushQueue: new FlushQueue(),
      toStatus: options.toStatus ?? (() => new GrpcStatus(Code.UNKNOWN, 'internal error')),
      refusal: options.refusal ?? (() => undefined),
      onViolation: options.onViolation ?? (() => undefined),
      onInternalError: options.onInternalError ?? throwLater,
    };
    this.#times = { maxAgeMs: 0, maxAgeGraceMs: 0, keepaliveMs: 0, ...options.times };
    this.listener = options.tls === undefined ? this.#plainListener() : this.#tlsListener(options.tls);
  }

  /** Connections that are open. */
  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Calls in flight. */
  get callCount(): number {
    let count = 0;
    for (const connection of this.#connections.keys()) count += connection.streamCount;
    return count;
  }

  /**
   * Listens.
   *
   * @returns the port; 0 on a Unix socket.
   * @throws Error of `net.Server.listen`, such as EADDRINUSE.
   */
  async listen(address: ListenAddress): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.listener.once('error', reject);
      this.listener.listen({ backlog: 511, ...address }, () => {
        this.listener.off('error', reject);
        resolve();
      });
    });
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs).unref();
    const bound = this.listener.address();
    return typeof bound === 'object' && bound !== null ? bound.port : 0;
  }

  /** Uses other certificates for the connections from now on. */
  setSecureContext(options: TlsOptions): void {
    if ('setSecureContext' in this.listener && typeof this.listener.setSecureContext === 'function') {
      this.listener.setSecureContext(options);
    }
  }

  /**
   * Stops listening, sends GOAWAY, and resolves when all calls in flight have ended. Idle and
   * silent connections end at once; what is left when `signal` aborts is cut off.
   */
  async drain(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#drained = resolve;
    this.listener.close();
    for (const socket of this.#handshakes?.values() ?? []) socket.destroy();
    for (const connection of this.#connections.keys()) connection.drain();
    const finish = setTimeout(() => {
      for (const connection of this.#connections.keys()) connection.finishDrain();
    }, drainPingMs);
    const cut = () => {
      for (const connection of this.#connections.keys()) connection.destroy();
    };
    if (signal.aborted) cut();
    else signal.addEventListener('abort', cut, { once: true });
    if (this.#connections.size === 0) resolve();
    await promise;
    signal.removeEventListener('abort', cut);
    clearTimeout(finish);
    clearInterval(this.#sweeper);
  }

  #plainListener(): NetServer {
    return createServer({ noDelay: true }, (socket) => {
      this.#accept(socket, { address: socket.remoteAddress ?? '', certificate: undefined });
    });
  }

  #tlsListener(options: TlsOptions): NetServer {
    const handshakeTimeout = this.#host.limits.prefaceTimeoutMs;
    const listener = createTlsServer({ noDelay: true, ...options, ALPNProtocols: ['h2'], handshakeTimeout });
    listener.on('connection', () => {
      const open = this.#handshakes?.size ?? 0;
      if (open + this.#connections.size >= this.#host.limits.maxConnections) this.#makeRoom();
    });
    this.#handshakes = new PendingHandshakes(listener, (socket) => socket);
    listener.on('secureConnection', (socket) => {
      this.#handshakes?.take(socket);
      const certificate = socket.authorized ? socket.getPeerCertificate() : undefined;
      this.#accept(socket, { address: socket.remoteAddress ?? '', certificate });
    });
    return listener;
  }

  #accept(socket: Socket, peer: Peer): void {
    // Without a listener an error of the socket would end the process; its 'close' follows.
    socket.on('error', () => socket.destroy());
    if (this.#drained !== undefined) {
      socket.destroy();
      return;
    }
    if (this.#connections.size >= this.#host.limits.maxConnections) this.#closeIdlest();
    const connection = new Connection(socket, this.#host, peer);
    const { maxAgeMs } = this.#times;
    const drainAtMs = connection.openedMs + jitterAge(maxAgeMs, Math.random());
    this.#connections.set(connection, { drainAtMs, drainedMs: undefined, pingedMs: 0 });
    socket.once('close', () => {
      this.#connections.delete(connection);
      if (this.#connections.size === 0) this.#drained?.();
    });
  }

  /** Clients with an unfinished TLS handshake must not evict others. */
  #makeRoom(): void {
    const handshake = this.#handshakes?.takeOldest();
    if (handshake === undefined) this.#closeIdlest();
    else handshake.destroy();
  }

  /**
   * Closes a connection for a new one: without calls in flight, without calls so far, idle for the
   * longest time.
   */
  #closeIdlest(): void {
    let idlest: Connection | undefined;
    for (const connection of this.#connections.keys()) {
      if (idlest === undefined || isIdler(connection, idlest)) idlest = connection;
    }
    idlest?.destroy();
  }

  #sweep(): void {
    const nowMs = performance.now();
    const { prefaceTimeoutMs } = this.#host.limits;
    const { maxAgeGraceMs, keepaliveMs } = this.#times;
    for (const [connection, state] of this.#connections) {
      connection.sweep(nowMs);
      if (!connection.established && nowMs - connection.openedMs > prefaceTimeoutMs) connection.destroy();
      // Before the first SETTINGS the time for the preface applies.
      if (nowMs >= state.drainAtMs && connection.established) {
        connection.drain();
        // The time counts from the GOAWAY on, which a busy process may send late.
        state.drainedMs ??= nowMs;
        if (nowMs - state.drainedMs > drainPingMs) connection.finishDrain();
        if (maxAgeGraceMs > 0 && nowMs - state.drainedMs > maxAgeGraceMs) connection.destroy();
      }
      if (keepaliveMs > 0 && nowMs - connection.activeMs > keepaliveMs) {
        if (state.pingedMs < connection.activeMs) {
          state.pingedMs = nowMs;
          connection.ping();
        } else if (nowMs - state.pingedMs > keepaliveMs) connection.destroy();
      }
    }
  }
}

/**
 * The age at which a connection is drained: its maximum age give or take a tenth, so that clients
 * do not reconnect all at once.
 *
 * @param random in [0, 1).
 */
export function jitterAge(maxAgeMs: number, random: number): number {
  return maxAgeMs > 0 ? maxAgeMs * (0.9 + 0.2 * random) : Number.POSITIVE_INFINITY;
}

function throwLater(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}

function isIdler(a: Connection, b: Connection): boolean {
  if ((a.streamCount === 0) !== (b.streamCount === 0)) return a.streamCount === 0;
  // Opening connections without ever using them must not push out those of Envoy.
  if (a.used !== b.used) return !a.used;
  return a.activeMs < b.activeMs;
}
