import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type t from 'tap';

/** A TCP connection between a server and its database that can be cut in one direction. */
export interface Link {
  /** Connection string that leads through it. */
  readonly url: string;
  /** Discards what the database sends from now on. */
  dropAnswers(): void;
}

/** Listens on a free port and forwards to the database of a connection string. */
export async function startLink(test: Pick<typeof t, 'teardown'>, databaseUrl: string): Promise<Link> {
  const { port, hostname } = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let isDropping = false;
  const listener = createServer((socket) => {
    const upstream = connect(Number(port), hostname);
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(from);
      from.on('error', () => to.destroy()).on('close', () => to.destroy());
    }
    socket.pipe(upstream);
    upstream.on('data', (answer) => {
      if (!isDropping) socket.write(answer);
    });
  });
  test.teardown(() => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const url = new URL(databaseUrl);
  // Parsed boundary: it listens on TCP.
  url.host = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  return {
    url: url.href,
    dropAnswers() {
      isDropping = true;
    },
  };
}
