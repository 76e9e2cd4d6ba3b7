import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import {
  closeTimeoutMs,
  createOutageLog,
  defaultMaxBufferBytes,
  type LineTransport,
  type LineTransportDeps,
  type LineTransportOptions,
} from './statsd-transport.ts';

/** Options of the UDP transport. */
export interface UdpLineTransportOptions extends LineTransportOptions {
  /** How often the host name is resolved again; default 30 s. */
  readonly resolveEveryMs?: number;
}

/** Largest datagram that passes usual networks unfragmented, as in the original. */
const maxDatagramBytes = 1432;
const defaultResolveEveryMs = 30_000;

interface Target {
  readonly address: string;
  readonly socket: Socket;
  readonly family: number;
}

/**
 * Makes a transport over UDP: each `send` is one datagram. Names are resolved in the background, because resolving for each
 * datagram (what `dgram` does by itself) would keep a thread of libuv's few busy.
 */
export function createUdpLineTransport(
  options: UdpLineTransportOptions,
  deps: LineTransportDeps,
): LineTransport {
  const maxBufferBytes = options.maxBufferBytes ?? defaultMaxBufferBytes;
  const outage = createOutageLog(options, deps.logger);
  let target: Target | undefined;
  let waiting: Buffer[] = [];
  let bufferedBytes = 0;
  let resolving = false;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  const idle = new Set<() => void>();

  async function resolve(): Promise<void> {
    resolving = true;
    try {
      // Where a name has both, a daemon that listens on IPv4 only (the usual default) must still be found.
      const { address, family } = await lookup(options.host, { order: 'ipv4first' });
      if (closed && waiting.length === 0) return;
      retarget(address, family);
      const chunks = waiting;
      waiting = [];
      for (const chunk of chunks) transmit(chunk);
    } catch (error) {
      // The name does not resolve now: the last address, if any, stays in use, and the next round tries again.
      if (target === undefined && error instanceof Error) outage.failed(error);
    } finally {
      resolving = false;
    }
  }

  function retarget(address: string, family: number): void {
    if (target?.family === family) {
      target = { ...target, address };
      return;
    }
    target?.socket.close();
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
    // A datagram nobody receives is no failure of ours.
    socket.on('error', () => {});
    socket.unref();
    target = { address, family, socket };
  }

  function transmit(chunk: Buffer): void {
    if (target === undefined) {
      waiting.push(chunk);
      return;
    }
    target.socket.send(chunk, options.port, target.address, (error) => {
      release(chunk.length);
      if (error === null || error === undefined) {
        outage.reached();
        return;
      }
      deps.onDropped(chunk.length);
      outage.failed(error);
    });
  }

  function release(bytes: number): void {
    bufferedBytes -= bytes;
    if (bufferedBytes > 0) return;
    for (const resume of idle) resume();
  }

  function refresh(): void {
    if (!resolving) void resolve();
  }

  function allSent(): Promise<void> {
    if (bufferedBytes === 0) return Promise.resolve();
    return new Promise((done) => {
      const giveUp = setTimeout(done, closeTimeoutMs);
      idle.add(() => {
        clearTimeout(giveUp);
        done();
      });
    });
  }

  return {
    maxChunkBytes: maxDatagramBytes,
    start() {
      if (timer !== undefined || closed) return;
      timer = setInterval(refresh, options.resolveEveryMs ?? defaultResolveEveryMs).unref();
      refresh();
    },
    send(lines) {
      const chunk = Buffer.from(lines);
      if (closed || bufferedBytes + chunk.length > maxBufferBytes) {
        deps.onDropped(chunk.length);
        return;
      }
      bufferedBytes += chunk.length;
      transmit(chunk);
    },
    async close() {
      if (closed) return;
      closed = true;
      clearInterval(timer);
      await allSent();
      if (waiting.length > 0) deps.onDropped(bufferedBytes);
      waiting = [];
      target?.socket.close();
      target = undefined;
    },
  };
}
