import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import {
  closeTimeoutMs,
  defaultMaxBufferBytes,
  type LineTransport,
  type LineTransportOptions,
  OutageLog,
} from './statsd-transport.ts';

interface UdpTransportOptions extends LineTransportOptions {
  /** How often the host name is resolved again; default 30 s. */
  readonly resolveEveryMs?: number;
}

/** Largest datagram that usual networks do not fragment, as in envoyproxy/ratelimit. */
const maxDatagramBytes = 1432;
const defaultResolveEveryMs = 30_000;

interface Target {
  readonly address: string;
  readonly socket: Socket;
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
