import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';

/** A request as received; also the JSON body of the response. */
export interface EchoedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A running echo upstream. */
export interface Echo {
  readonly port: number;
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** Received requests, oldest first. */
  readonly requests: readonly EchoedRequest[];
  /** Closes it with its connections. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Longer than Envoy keeps idle connections: the side that closes first may interrupt requests of
 * the other.
 * @see https://www.envoyproxy.io/docs/envoy/latest/faq/configuration/timeouts
 */
const keepAliveTimeout = 3_660_000;

/** Starts an HTTP server that responds with the request as JSON: the application behind Envoy. */
export async function startEcho(): Promise<Echo> {
  const requests: EchoedRequest[] = [];
  const server = await startJsonServer((request) => {
    requests.push(request);
    return { status: 200, body: request };
  });
  return { ...server, requests };
}

/** Starts an HTTP server on loopback that responds with JSON. */
export async function startJsonServer(
  respond: (request: EchoedRequest) => { readonly status: number; readonly body: unknown },
): Promise<Omit<Echo, 'requests'>> {
  const server = createServer({ keepAliveTimeout }, async (incoming, response) => {
    const { method = '', url = '', headers } = incoming;
    const received = await text(incoming).catch(() => undefined);
    // The client has disconnected.
    if (received === undefined) return;
    const { status, body } = respond({ method, path: url, headers, body: received });
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server without a port');
  return {
    port: address.port,
    url: `http://127.0.0.1:${address.port}`,
    async stop() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
