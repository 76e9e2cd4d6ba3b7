import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * How a proxy treats its connections. `refuse`: closes them all, and every new one. `hold`: keeps
 * them open and forwards nothing, like a network that loses packets; what arrives meanwhile is
 * forwarded later. `lose`: like a firewall that has forgotten its connections: nothing arrives,
 * connections that are open or opened meanwhile never recover, and neither side learns of it.
 */
type ProxyMode = 'forward' | 'hold' | 'lose' | 'refuse';

/** A proxy between a service and a server that stays healthy. */
export interface TcpProxy {
  readonly port: number;
  /** Applies to open connections, too. */
  set(mode: ProxyMode): void;
  /** Delays each chunk in both directions. */
  slowDown(delayMs: number): void;
  /** New connections go to another port. */
  redirect(port: number): void;
  stop(): Promise<void>;
}

const host = '127.0.0.1';

/** Starts a proxy in front of a port of this machine. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  let mode: ProxyMode = 'forward';
  let target = targetPort;
  let delayMs = 0;
  let forwarding = Promise.withResolvers<void>();
  forwarding.resolve();
  const sockets = new Set<Socket>();
  const lost = new WeakSet<Socket>();

  function lose(socket: Socket): void {
    lost.add(socket);
    socket.unpipe();
    socket.on('error', () => undefined);
    socket.resume();
  }

  function track(socket: Socket): Socket {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  }

  function gate(): Transform {
    return new Transform({
      async transform(chunk, _encoding, callback) {
        if (delayMs > 0) await delay(delayMs);
        await forwarding.promise;
        callback(null, chunk);
      },
    });
  }

  const server = createServer((socket) => {
    if (mode === 'refuse') return void socket.resetAndDestroy();
    if (mode === 'lose') return lose(track(socket));
    const upstream = createConnection({ port: target, host });
    for (const [from, to] of [
      [track(socket), track(upstream)],
      [upstream, socket],
    ] as const) {
      const end = () => void (lost.has(from) || to.destroy());
      from.on('error', end);
      // An end is a packet, too.
      from.once('close', () => void forwarding.promise.then(end));
      from.pipe(gate()).pipe(to);
    }
  });
  server.listen(0, host);
  await once(server, 'listening');

  return {
    // A listening TCP server has such an address.
    port: (server.address() as AddressInfo).port,
    set(next) {
      mode = next;
      if (next === 'hold') forwarding = Promise.withResolvers();
      else forwarding.resolve();
      if (next === 'refuse') for (const socket of sockets) socket.resetAndDestroy();
      if (next === 'lose') for (const socket of sockets) lose(socket);
    },
    slowDown(ms) {
      delayMs = ms;
    },
    redirect(port) {
      target = port;
    },
    async stop() {
      forwarding.resolve();
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
