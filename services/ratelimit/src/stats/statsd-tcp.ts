import { connect, type Socket } from 'node:net';
import {
  closeTimeoutMs,
  defaultMaxBufferBytes,
  type LineTransport,
  type LineTransportOptions,
  OutageLog,
} from './statsd-transport.ts';

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
