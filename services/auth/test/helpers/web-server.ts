import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type t from 'tap';

/** A web server on loopback. */
export interface WebServer {
  readonly port: number;
  /** Requested paths with their query. */
  readonly requests: readonly string[];
}

/** Starts a web server with a handler. */
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
