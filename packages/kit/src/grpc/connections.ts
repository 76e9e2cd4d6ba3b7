import type { Socket } from 'node:net';
import type { Logger } from '../logger.ts';
import { monotonicNow, startDeadline } from '../time.ts';

/** Limits of the connections of a port. */
export interface ConnectionLimits {
  /**
   * At this number, the connection idle for the longest time is closed for each new one; 0 means no
   * limit.
   */
  readonly maxConnections: number;
  /**
   * At this number of connections of one address, its connection idle for the longest time is
   * closed for each new one, then one that stalls; the new one is refused when there is none.
   * Default 0, which means no limit.
   */
  readonly maxConnectionsPerAddress?: number;
  /**
   * Whether the client of a connection in use keeps the server waiting: at the limits such
   * connections are closed before others in use. Default: none does.
   */
  readonly getStall?: (connection: Connection) => Stall | undefined;
  /** Time from accepting a connection to its first protocol bytes, a TLS handshake included. */
  readonly prefaceTimeoutMs: number;
}

/** How long a client keeps the server waiting. */
export interface Stall {
  /** Whether it has ever answered. */
  readonly hasAnswered: boolean;
  /** Monotonic time since which it owes an answer. */
  readonly sinceMs: number;
}

/** Orders stalls: clients that have never answered first, then by time. */
export function compareStalls(a: Stall, b: Stall): number {
  return Number(a.hasAnswered) - Number(b.hasAnswered) || a.sinceMs - b.sinceMs;
}

/** The peer of a connection. */
export interface Connection {
  /** `address:port`, as gRPC calls have it. */
  readonly peer: string;
}

/** One connection. */
export interface ServerConnection extends Connection {
  readonly socket: Socket;
  /** Undefined on a Unix socket. Kept here because a closed socket has none. */
  readonly remoteAddress: string | undefined;
  /** Sends GOAWAY and ends our side once it is sent; unset until there is a session. */
  close: (() => void) | undefined;
  /** Calls in flight. */
  calls: number;
  readonly acceptedMs: number;
  /** Cancels the preface timeout; unset once the preface was received. */
  cancelPrefaceTimer: (() => void) | undefined;
}

/**
 * Time for a client to close its side after ours. A client that follows the protocol needs one
 * round trip; others must not delay a stop.
 */
const lingerMs = 200;

/** A client that reconnects in a loop must not fill the log. */
const logIntervalMs = 10_000;

/**
 * The connections of a port with long-lived connections: closes silent ones, limits their number,
 * and closes them at a stop without waiting for clients that keep their side open. A server reports
 * sessions and calls to it.
 */
export class ServerConnections {
  // Closed in this order at the limit, the least recently used of each group first: a flood of new
  // connections evicts itself, and connections in use go last.
  readonly #unused = new Set<ServerConnection>();
  readonly #idle = new Set<ServerConnection>();
  readonly #busy = new Set<ServerConnection>();
  readonly #countByAddress = new Map<string, number>();
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

  /** Follows a connection accepted at `acceptedMs`, by default now. */
  add(socket: Socket, acceptedMs: number = monotonicNow()): ServerConnection {
    const connection: ServerConnection = {
      socket,
      peer: `${socket.remoteAddress}:${socket.remotePort}`,
      remoteAddress: socket.remoteAddress,
      close: undefined,
      calls: 0,
      acceptedMs,
      cancelPrefaceTimer: undefined,
    };
    if (this.#draining || !this.#freeAddressSlot(socket)) {
      socket.destroy();
      return connection;
    }
    const { maxConnections, prefaceTimeoutMs } = this.#limits;
    if (maxConnections > 0 && this.size >= maxConnections) {
      this.#evict(firstOf(this.#unused) ?? firstOf(this.#idle) ?? this.#findStalled() ?? firstOf(this.#busy));
    }
    this.#unused.add(connection);
    this.#count(connection, 1);
    const timeLeftMs = Math.max(0, acceptedMs + prefaceTimeoutMs - monotonicNow());
    connection.cancelPrefaceTimer = startDeadline(timeLeftMs, () => socket.destroy());
    // Emitted once everything is sent and our side is closed. Node's HTTP/2 then waits for the
    // client without a limit.
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

  /** Call once the client's preface has arrived. */
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
   * Destroys connections without a call in flight, after a moment for GOAWAY to arrive if they have
   * a session. The others end with their session, which the caller closes.
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

  /** False when the address is at its limit and all its connections are in use and answer. */
  #freeAddressSlot({ remoteAddress }: Socket): boolean {
    const { maxConnectionsPerAddress = 0 } = this.#limits;
    const count = this.#countByAddress.get(remoteAddress ?? '') ?? 0;
    if (maxConnectionsPerAddress === 0 || count < maxConnectionsPerAddress) return true;
    const victim =
      [...this.#unused, ...this.#idle].find((one) => one.remoteAddress === remoteAddress) ??
      this.#findStalled(remoteAddress);
    this.#evict(victim);
    return victim !== undefined;
  }

  /** The connection in use that stalls the most, of one address or of all. */
  #findStalled(remoteAddress?: string): ServerConnection | undefined {
    const { getStall } = this.#limits;
    if (getStall === undefined) return undefined;
    let found: { readonly connection: ServerConnection; readonly stall: Stall } | undefined;
    for (const connection of this.#busy) {
      if (remoteAddress !== undefined && connection.remoteAddress !== remoteAddress) continue;
      const stall = getStall(connection);
      if (stall === undefined || (found !== undefined && compareStalls(stall, found.stall) >= 0)) continue;
      found = { connection, stall };
    }
    return found?.connection;
  }

  #count({ remoteAddress }: ServerConnection, change: number): void {
    if (remoteAddress === undefined) return;
    const count = (this.#countByAddress.get(remoteAddress) ?? 0) + change;
    if (count === 0) this.#countByAddress.delete(remoteAddress);
    else this.#countByAddress.set(remoteAddress, count);
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
      'connection limit reached, closing idle and stalled connections',
    );
    this.#evicted = 0;
  }

  #moveTo(group: Set<ServerConnection>, connection: ServerConnection): void {
    const known = [this.#unused, this.#idle, this.#busy].some((one) => one.delete(connection));
    // The calls of an evicted connection may still end.
    if (known) group.add(connection);
  }
}

const firstOf = <Item>(items: ReadonlySet<Item>): Item | undefined => items.values().next().value;

function destroyLater(socket: Socket): void {
  if (socket.destroyed) return;
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
}
