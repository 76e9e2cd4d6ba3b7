import { connect, type Socket } from 'node:net';
import {
  closeTimeoutMs,
  createOutageLog,
  defaultMaxBufferBytes,
  type LineTransport,
  type LineTransportDeps,
  type LineTransportOptions,
} from './statsd-transport.ts';

/** Options of the TCP transport. */
export interface TcpLineTransportOptions extends LineTransportOptions {
  /** How long to wait before the next attempt, and for an attempt; default 3 s. */
  readonly reconnectMs?: number;
}

const defaultReconnectMs = 3000;
const keepAliveMs = 30_000;
const maxChunkBytes = 65_536;

/**
 * Makes a transport over one TCP connection, made anew when it breaks; the host name is resolved each time. Lines wait in
 * a bounded buffer while there is no connection or the server does not read.
 */
export function createTcpLineTransport(
  options: TcpLineTransportOptions,
  deps: LineTransportDeps,
): LineTransport {
  const maxBufferBytes = options.maxBufferBytes ?? defaultMaxBufferBytes;
  const reconnectMs = options.reconnectMs ?? defaultReconnectMs;
  const outage = createOutageLog(options, deps.logger);
  let socket: Socket | undefined;
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let reconnect: NodeJS.Timeout | undefined;
  let closed = false;

  function open(): void {
    const opening = connect({ host: options.host, port: options.port, keepAlive: true });
    socket = opening;
    opening.setKeepAlive(true, keepAliveMs);
    // Statistics must not keep the process alive.
    opening.unref();
    let connected = false;
    // A connection that breaks is made anew before it is worth a word; 'close' follows either way.
    opening.on('error', (error) => {
      if (!connected) outage.failed(error);
    });
    // Without reading, the end of the connection would not be seen.
    opening.resume();
    const giveUp = setTimeout(
      () => opening.destroy(new Error(`no connection within ${reconnectMs} ms`)),
      reconnectMs,
    ).unref();
    opening.on('connect', () => {
      connected = true;
      outage.reached();
      clearTimeout(giveUp);
      writeWaiting(opening);
      if (closed) opening.end();
    });
    opening.on('close', () => {
      clearTimeout(giveUp);
      if (opening.writableLength > 0) deps.onDropped(opening.writableLength);
      socket = undefined;
      if (!closed) reconnect = setTimeout(open, reconnectMs).unref();
    });
  }

  function writeWaiting(to: Socket): void {
    for (const chunk of waiting) to.write(chunk);
    waiting = [];
    waitingBytes = 0;
  }

  function dropWaiting(): void {
    if (waitingBytes > 0) deps.onDropped(waitingBytes);
    waiting = [];
    waitingBytes = 0;
  }

  return {
    maxChunkBytes,
    start() {
      if (socket === undefined && !closed) open();
    },
    send(lines) {
      const chunk = Buffer.from(lines);
      const buffered = waitingBytes + (socket?.writableLength ?? 0);
      if (closed || buffered + chunk.length > maxBufferBytes) {
        deps.onDropped(chunk.length);
        return;
      }
      if (socket?.readyState === 'open') {
        socket.write(chunk);
        return;
      }
      waiting.push(chunk);
      waitingBytes += chunk.length;
    },
    async close() {
      if (closed) return;
      closed = true;
      clearTimeout(reconnect);
      const closing = socket;
      if (closing !== undefined) {
        closing.ref();
        const giveUp = setTimeout(() => closing.destroy(), closeTimeoutMs);
        if (!closing.connecting) closing.end();
        // Not `once` of node:events: that would reject on the 'error' of a server that is away.
        await new Promise((resolve) => closing.once('close', resolve));
        clearTimeout(giveUp);
      }
      dropWaiting();
    },
  };
}
