import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { connect, type Socket } from 'node:net';
import type { Logger } from '@tollgate/kit/logger';

/** Sends lines to a statsd server without ever waiting for it. */
export interface LineTransport {
  /** Largest text for one `send`, in bytes, so that little is lost when a bound is hit. */
  readonly maxChunkBytes: number;
  /** Starts connecting; an unreachable server is retried, and logged once. */
  start(): void;
  /** Sends whole lines, now or once connected. What exceeds the buffer is dropped and counted. */
  send(lines: string): void;
  /** Sends what is left for at most a second, then closes the socket. Idempotent. */
  close(): Promise<void>;
}

export interface LineTransportOptions {
  readonly host: string;
  readonly port: number;
  /** Bound of unsent lines; default 4 MiB, as in envoyproxy/ratelimit. */
  readonly maxBufferBytes?: number;
  readonly onDropped: (bytes: number) => void;
  /** Logs when the server becomes unreachable, and when it recovers. */
  readonly logger: Logger;
}

const defaultMaxBufferBytes = 4 * 1024 * 1024;

/** How long `close` may take to send what is left. */
const closeTimeoutMs = 1000;

/**
 * Logs one warning when a statsd server becomes unreachable and one when it recovers, however often
 * it is retried.
 */
export class OutageLog {
  readonly #options: Pick<LineTransportOptions, 'host' | 'port' | 'logger'>;
  #unreachable: boolean = false;

  constructor(options: Pick<LineTransportOptions, 'host' | 'port' | 'logger'>) {
    this.#options = options;
  }

  onFailure({ message, code }: NodeJS.ErrnoException): void {
    if (this.#unreachable) return;
    this.#unreachable = true;
    const { host, port, logger } = this.#options;
    // When all addresses of a name failed, only the code has the reason.
    const reason = message === '' ? code : message;
    logger.warn({ host, port, reason }, 'statsd server unreachable');
  }

  onSuccess(): void {
    if (!this.#unreachable) return;
    this.#unreachable = false;
    const { host, port, logger } = this.#options;
    logger.warn({ host, port }, 'statsd server reachable again');
  }
}

interface UdpTransportOptions extends LineTransportOptions {
  /** How often the host name is resolved again; default 30 s. */
  readonly resolveEveryMs?: number;
}

/** Largest datagram that usual networks do not fragment, as in envoyproxy/ratelimit. */
const maxDatagramBytes = 1432;
const defaultResolveEveryMs = 30_000;

interface Target {
  readonly address: string;
  readonly socket: UdpSocket;
  readonly family: number;
}

/**
 * Sends each chunk as one datagram. Names are resolved in the background, because resolving for
 * each datagram, as `dgram` does by default, would keep a thread of libuv busy.
 */
export class UdpTransport implements LineTransport {
  readonly maxChunkBytes = maxDatagramBytes;
  readonly #options: UdpTransportOptions;
  readonly #maxBufferBytes: number;
  readonly #outage: OutageLog;
  readonly #onSent = new Set<() => void>();
  #target: Target | undefined;
  #waiting: Buffer[] = [];
  #bufferedBytes = 0;
  #isResolving: boolean = false;
  #timer: NodeJS.Timeout | undefined;
  #closed: boolean = false;

  constructor(options: UdpTransportOptions) {
    this.#options = options;
    this.#maxBufferBytes = options.maxBufferBytes ?? defaultMaxBufferBytes;
    this.#outage = new OutageLog(options);
  }

  start(): void {
    if (this.#timer !== undefined || this.#closed) return;
    const { resolveEveryMs = defaultResolveEveryMs } = this.#options;
    this.#timer = setInterval(() => this.#refresh(), resolveEveryMs).unref();
    this.#refresh();
  }

  send(lines: string): void {
    const chunk = Buffer.from(lines);
    if (this.#closed || this.#bufferedBytes + chunk.length > this.#maxBufferBytes) {
      this.#options.onDropped(chunk.length);
      return;
    }
    this.#bufferedBytes += chunk.length;
    this.#transmit(chunk);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#allSent();
    if (this.#waiting.length > 0) this.#options.onDropped(this.#bufferedBytes);
    this.#waiting = [];
    this.#target?.socket.close();
    this.#target = undefined;
  }

  #refresh(): void {
    if (!this.#isResolving) void this.#resolve();
  }

  async #resolve(): Promise<void> {
    this.#isResolving = true;
    try {
      // Daemons usually listen on IPv4 only, also when their name has both.
      const { address, family } = await lookup(this.#options.host, { order: 'ipv4first' });
      if (this.#closed && this.#waiting.length === 0) return;
      this.#setTarget(address, family);
      const chunks = this.#waiting;
      this.#waiting = [];
      for (const chunk of chunks) this.#transmit(chunk);
    } catch (error) {
      // The last address, if any, stays in use until the next attempt.
      if (this.#target === undefined && error instanceof Error) this.#outage.onFailure(error);
    } finally {
      this.#isResolving = false;
    }
  }

  #setTarget(address: string, family: number): void {
    if (this.#target?.family === family) {
      this.#target = { ...this.#target, address };
      return;
    }
    this.#target?.socket.close();
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
    // A datagram without a receiver is not an error.
    socket.on('error', () => {});
    socket.unref();
    this.#target = { address, family, socket };
  }

  #transmit(chunk: Buffer): void {
    if (this.#target === undefined) {
      this.#waiting.push(chunk);
      return;
    }
    const { port, onDropped } = this.#options;
    this.#target.socket.send(chunk, port, this.#target.address, (error) => {
      this.#release(chunk.length);
      if (error === null || error === undefined) {
        this.#outage.onSuccess();
        return;
      }
      onDropped(chunk.length);
      this.#outage.onFailure(error);
    });
  }

  #release(bytes: number): void {
    this.#bufferedBytes -= bytes;
    if (this.#bufferedBytes > 0) return;
    for (const resume of this.#onSent) resume();
  }

  #allSent(): Promise<void> {
    if (this.#bufferedBytes === 0) return Promise.resolve();
    return new Promise((done) => {
      const giveUp = setTimeout(done, closeTimeoutMs);
      this.#onSent.add(() => {
        clearTimeout(giveUp);
        done();
      });
    });
  }
}

interface TcpTransportOptions extends LineTransportOptions {
  /** Delay before the next attempt to connect, and timeout of an attempt; default 3 s. */
  readonly reconnectMs?: number;
}

const defaultReconnectMs = 3000;
const keepAliveMs = 30_000;

/**
 * One TCP connection, which reconnects when it is lost; the host name is resolved each time. Lines
 * wait in a bounded buffer while there is no connection or the server does not read.
 */
export class TcpTransport implements LineTransport {
  readonly maxChunkBytes = 65_536;
  readonly #options: TcpTransportOptions;
  readonly #maxBufferBytes: number;
  readonly #reconnectMs: number;
  readonly #outage: OutageLog;
  #socket: Socket | undefined;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #reconnect: NodeJS.Timeout | undefined;
  #closed: boolean = false;

  constructor(options: TcpTransportOptions) {
    this.#options = options;
    this.#maxBufferBytes = options.maxBufferBytes ?? defaultMaxBufferBytes;
    this.#reconnectMs = options.reconnectMs ?? defaultReconnectMs;
    this.#outage = new OutageLog(options);
  }

  start(): void {
    if (this.#socket === undefined && !this.#closed) this.#connect();
  }

  send(lines: string): void {
    const chunk = Buffer.from(lines);
    const buffered = this.#waitingBytes + (this.#socket?.writableLength ?? 0);
    if (this.#closed || buffered + chunk.length > this.#maxBufferBytes) {
      this.#options.onDropped(chunk.length);
      return;
    }
    if (this.#socket?.readyState === 'open') {
      this.#socket.write(chunk);
      return;
    }
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#reconnect);
    const socket = this.#socket;
    if (socket !== undefined) {
      socket.ref();
      const giveUp = setTimeout(() => socket.destroy(), closeTimeoutMs);
      if (!socket.connecting) socket.end();
      // Not `once` of node:events, which rejects on the 'error' of an unreachable server.
      await new Promise((resolve) => socket.once('close', resolve));
      clearTimeout(giveUp);
    }
    if (this.#waitingBytes > 0) this.#options.onDropped(this.#waitingBytes);
    this.#takeWaiting();
  }

  #connect(): void {
    const { host, port } = this.#options;
    const reconnectMs = this.#reconnectMs;
    const socket = connect({ host, port, keepAlive: true });
    this.#socket = socket;
    socket.setKeepAlive(true, keepAliveMs);
    // Statistics must not keep the process alive.
    socket.unref();
    let connected = false;
    // A lost connection is retried before it is logged; 'close' follows in any case.
    socket.on('error', (error) => {
      if (!connected) this.#outage.onFailure(error);
    });
    // Without reading, the end of the connection would not be detected.
    socket.resume();
    const giveUp = setTimeout(
      () => socket.destroy(new Error(`no connection within ${reconnectMs} ms`)),
      reconnectMs,
    ).unref();
    socket.on('connect', () => {
      connected = true;
      this.#outage.onSuccess();
      clearTimeout(giveUp);
      for (const chunk of this.#takeWaiting()) socket.write(chunk);
      if (this.#closed) socket.end();
    });
    socket.on('close', () => {
      clearTimeout(giveUp);
      if (socket.writableLength > 0) this.#options.onDropped(socket.writableLength);
      this.#socket = undefined;
      if (!this.#closed) this.#reconnect = setTimeout(() => this.#connect(), reconnectMs).unref();
    });
  }

  #takeWaiting(): Buffer[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    return waiting;
  }
}
