import type { Socket } from 'node:net';
import { AbstractConnector } from 'ioredis';

/** How long a server has to close a connection we are done with before we cut it, milliseconds. */
const disconnectTimeoutMs = 100;

/** The class that an ioredis client makes its connection with. */
export type ConnectorClass = new () => AbstractConnector;

/**
 * Makes the class from what opens a socket. ioredis listens to the first error of a socket only; a TLS handshake that is
 * given up may report two, and the second one, which nobody listens to, would end the process.
 */
export function connectorFor(open: () => Socket): ConnectorClass {
  return class extends AbstractConnector {
    constructor() {
      super(disconnectTimeoutMs);
    }

    connect(): Promise<Socket> {
      // Rejects when there is no socket to be had.
      return new Promise((resolve) => {
        this.connecting = true;
        const socket = open();
        socket.on('error', (error) => {
          this.firstError ??= error;
        });
        this.stream = socket;
        resolve(socket);
      });
    }
  };
}
