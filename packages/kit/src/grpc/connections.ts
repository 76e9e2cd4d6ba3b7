import type { Socket } from 'node:net';
import type { Logger } from '../logger.ts';
import { monotonicNow, startDeadline } from '../time.ts';

/** Bounds of the connections of one port. */
export interface ConnectionLimits {
  /** At this number the connection that was idle longest is closed for each new one; 0 sets no limit. */
  readonly maxConnections: number;
  /**
   * At this number of connections of one address, its connection that was idle longest is closed for each new one; the new
   * one is refused when all are in use. Default 0, which sets no limit.
   */
  readonly maxConnectionsPerAddress?: number;
  /** Time from accepting a connection to its first protocol bytes, a TLS handshake included. */
  readonly prefaceTimeoutMs: number;
}

/** One connection. */
export interface ServerConnection {
  readonly socket: Socket;
  /** Undefined on a unix socket. Kept, because a socket that is closed has none. */
  readonly remoteAddress: string | undefined;
  /** Sends GOAWAY and ends our side once it is sent; unset until there is a session. */
  close: (() => void) | undefined;
  /** Calls in flight. */
  calls: number;
  readonly acceptedMs: number;
  /** Ends the wait for the preface; unset once that was received. */
  cancelPrefaceTimer: (() => void) | undefined;
}

/**
 * How long a client has to close its side after ours. A client that follows the protocol needs one round trip; others must
 * not hold up a stop.
 */
const lingerMs = 200;

/** A client that reconnects in a loop must not fill the log. */
const logIntervalMs = 10_000;

/**
 * The connections of a port of long-lived connections: cuts silent ones, bounds their number, and closes them at a stop
 * without waiting for clients that keep their side open. Knows sockets only; a server reports sessions and calls to it.
 */
export class ServerConnections {
  // Closed in this order at the limit, in each group the least recently used first: a flood of new connections evicts its
  // own, and a connection that is in use goes last.
  readonly #unused = new Set<ServerConnection>();
  readonly #idle = new Set<ServerConnection>();
  readonly #busy = new Set<ServerConnection>();
  readonly #ofAddress = new Map<string, number>();
  readonly #limits: ConnectionLimits;
  readonly #logger: Logger;
  #draining: boolean = false;
  #evicted = 0;
  #loggedMs = Number.NEGATIVE_INFINITY;

  constructor(limits: ConnectionLimits, logger: Logger) {
    this.#limits = limits;
    this.#logger = logger;
  }

  get size(): number {
    return this.#unused.size + this.#idle.size + this.#busy.size;
  }

  /** Follows a connection that was accepted at `acceptedMs`, by default just now. */
  add(socket: Socket, acceptedMs: number = monotonicNow()): ServerConnection {
    const connection: ServerConnection = {
      socket,
      remoteAddress: socket.remoteAddress,
      close: undefined,
      calls: 0,
      acceptedMs,
      cancelPrefaceTimer: undefined,
    };
    if (this.#draining || !this.#makeRoomFor(socket)) {
      socket.destroy();
      return connection;
    }
    const { maxConnections, prefaceTimeoutMs } = this.#limits;
    if (maxConnections > 0 && this.size >= maxConnections) {
      this.#evict(
        [this.#unused, this.#idle, this.#busy]
          .find((group) => group.size > 0)
          ?.values()
          .next().value,
      );
    }
    this.#unused.add(connection);
    this.#count(connection, 1);
    const timeLeftMs = Math.max(0, acceptedMs + prefaceTimeoutMs - monotonicNow());
    connection.cancelPrefaceTimer = startDeadline(timeLeftMs, () => socket.destroy());
    // Emitted once all is sent and our side is closed. Node's HTTP/2 then waits for the client's side without a bound.
    socket.once('finish', () => destroyLater(socket));
    socket.once('close', () => this.remove(connection));
    return connection;
  }

  /** Forgets a connection without closing it. */
  remove(connection: ServerConnection): void {
    this.prefaceReceived(connection);
    const known = [this.#unused, this.#idle, this.#busy].some((group) => group.delete(connection));
    if (known) this.#count(connection, -1);
  }

  /** The connection speaks the protocol. */
  prefaceReceived(connection: ServerConnection): void {
    connection.cancelPrefaceTimer?.();
    connection.cancelPrefaceTimer = undefined;
  }

  callStarted(connection: ServerConnection): void {
    connection.calls += 1;
    this.#moveTo(this.#busy, connection);
  }

  callEnded(connection: ServerConnection): void {
    connection.calls -= 1;
    this.#moveTo(connection.calls > 0 ? this.#busy : this.#idle, connection);
  }

  /**
   * Destroys connections without a call in flight, after a moment for GOAWAY to arrive where there is a session. The others
   * end when their session does; the caller has asked it to.
   */
  drain(): void {
    this.#draining = true;
    for (const connection of [...this.#unused, ...this.#idle]) {
      if (connection.cancelPrefaceTimer === undefined) destroyLater(connection.socket);
      else connection.socket.destroy();
    }
  }

  /** Destroys all connections. */
  destroy(): void {
    this.#draining = true;
    for (const { socket } of [...this.#unused, ...this.#idle, ...this.#busy]) socket.destroy();
  }

  /** False when the address has as many connections as it may, and all are in use. */
  #makeRoomFor({ remoteAddress }: Socket): boolean {
    const { maxConnectionsPerAddress = 0 } = this.#limits;
    const count = this.#ofAddress.get(remoteAddress ?? '') ?? 0;
    if (maxConnectionsPerAddress === 0 || count < maxConnectionsPerAddress) return true;
    const victim = [...this.#unused, ...this.#idle].find((one) => one.remoteAddress === remoteAddress);
    this.#evict(victim);
    return victim !== undefined;
  }

  #count({ remoteAddress }: ServerConnection, change: number): void {
    if (remoteAddress === undefined) return;
    const count = (this.#ofAddress.get(remoteAddress) ?? 0) + change;
    if (count === 0) this.#ofAddress.delete(remoteAddress);
    else this.#ofAddress.set(remoteAddress, count);
  }

  #evict(victim: ServerConnection | undefined): void {
    this.#logEviction();
    if (victim === undefined) return;
    // No GOAWAY before the preface: a flood of such connections must not linger.
    const sendsGoaway = victim.cancelPrefaceTimer === undefined && victim.calls === 0;
    this.remove(victim);
    if (sendsGoaway && victim.close !== undefined) {
      victim.close();
      destroyLater(victim.socket);
    } else victim.socket.destroy();
  }

  #logEviction(): void {
    this.#evicted += 1;
    if (monotonicNow() - this.#loggedMs < logIntervalMs) return;
    this.#loggedMs = monotonicNow();
    const { maxConnections, maxConnectionsPerAddress } = this.#limits;
    this.#logger.warn(
      { maxConnections, maxConnectionsPerAddress, closed: this.#evicted },
      'connection limit reached, closing idle connections',
    );
    this.#evicted = 0;
  }

  #moveTo(group: Set<ServerConnection>, connection: ServerConnection): void {
    const known = [this.#unused, this.#idle, this.#busy].some((one) => one.delete(connection));
    // One that was evicted may still end its calls.
    if (known) group.add(connection);
  }
}

function destroyLater(socket: Socket): void {
  if (socket.destroyed) return;
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
}
