import type { Socket } from 'node:net';
import type { Server as TlsServer } from 'node:tls';

/**
 * The sockets of a TLS server with an unfinished handshake, oldest first, each with a value. After
 * the handshake another object replaces the socket, so sockets are keyed by address; Unix sockets
 * have none and are not followed.
 */
export class PendingHandshakes<Value = Socket> {
  readonly #values = new Map<string, Value>();

  /** @param begin creates the value of an accepted socket. */
  constructor(server: TlsServer, begin: (socket: Socket) => Value) {
    server.on('connection', (socket: Socket) => {
      const address = addressOf(socket);
      if (address === undefined) return;
      const value = begin(socket);
      this.#values.set(address, value);
      socket.once('close', () => {
        if (this.#values.get(address) === value) this.#values.delete(address);
      });
    });
  }

  get size(): number {
    return this.#values.size;
  }

  values(): Iterable<Value> {
    return this.#values.values();
  }

  /** Removes the socket that was replaced by this one; undefined when it was not followed. */
  take(socket: Socket): Value | undefined {
    return this.#take(addressOf(socket) ?? '');
  }

  /** Removes the socket that was accepted first. */
  takeOldest(): Value | undefined {
    const [address = ''] = this.#values.keys();
    return this.#take(address);
  }

  #take(address: string): Value | undefined {
    const value = this.#values.get(address);
    this.#values.delete(address);
    return value;
  }
}

function addressOf({ remoteAddress, remotePort }: Socket): string | undefined {
  return remotePort === undefined ? undefined : `${remoteAddress} ${remotePort}`;
}
