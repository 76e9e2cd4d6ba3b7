import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type t from 'tap';

/** A web server of a test on loopback. */
export interface WebServer {
  readonly port: number;
  /** Paths that were asked for so far, with their query. */
  readonly requests: readonly string[];
}

/** Starts a web server that answers as the test says. */
export async function startWebServer(
  test: Pick<typeof t, 'teardown'>,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<WebServer> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return { port, requests };
}
