import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { Test } from 'tap';

/** A server that does not do what a Redis does. */
export interface InvalidServer {
  readonly address: string;
  /** Connections made so far. */
  readonly accepted: () => number;
}

/**
 * Listens on a free loopback port and hands every connection to `serve`; closed when the test ends.
 */
export async function startInvalidServer(t: Test, serve: (socket: Socket) => void): Promise<InvalidServer> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  const server = createServer((socket) => {
    accepted += 1;
    sockets.add(socket);
    // A client that gives up resets the connection.
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    serve(socket);
  });
  t.teardown(() => {
    for (const socket of sockets) {
      socket.destroy();
    }
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const bound = server.address();
  if (bound === null || typeof bound === 'string') {
    throw new TypeError('a TCP server has a port');
  }
  return { address: `127.0.0.1:${bound.port}`, accepted: () => accepted };
}

/** Has this process do as one that gets no CPU, or collects garbage. */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/**
 * Answers every command that a client sends, given in the RESP form, with what `reply` makes of its
 * words; the first is in lower case.
 */
export function answerCommands(socket: Socket, reply: (words: readonly string[]) => string): void {
  let waiting = '';
  socket.setNoDelay();
  socket.on('data', (data) => {
    waiting += data.toString('latin1');
    for (let words = takeCommand(); words !== undefined; words = takeCommand()) {
      socket.write(reply(words));
    }
  });

  function takeCommand(): string[] | undefined {
    const lines = waiting.split('\r\n');
    const count = Number(lines[0]?.slice(1));
    if (waiting === '' || lines.length < 2 * count + 2) {
      return undefined;
    }
    waiting = lines.slice(2 * count + 1).join('\r\n');
    const [name = '', ...rest] = lines.slice(1, 2 * count + 1).filter((_, i) => i % 2 === 1);
    return [name.toLowerCase(), ...rest];
  }
}
