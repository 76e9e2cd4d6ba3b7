import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';

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
  const server = createServer({ keepAliveTimeout }, (incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk;
    });
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming;
      const request: EchoedRequest = { method, path: url, headers, body };
      requests.push(request);
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(request));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server without a port');
  return {
    port: address.port,
    url: `http://127.0.0.1:${address.port}`,
    requests,
    async stop() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
