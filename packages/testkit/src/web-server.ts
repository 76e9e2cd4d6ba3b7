import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';

/** A web server on loopback. */
interface WebServer {
  readonly port: number;
  /** Requested paths with their query. */
  readonly requests: readonly string[];
}

/** Starts a web server with a handler; stopped when the test ends. */
export async function startWebServer(t: Pick<Test, 'teardown'>, answer: RequestListener): Promise<WebServer> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return { port, requests };
}
