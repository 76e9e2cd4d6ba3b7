import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { collectDefaultMetrics, type Registry } from 'prom-client';
import type { LifecycleComponent } from './lifecycle.ts';

/** Which metrics are served, and where. */
export type MetricsServerOptions = {
  readonly registry: Registry;
  /** Address to listen on; all when empty. */
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** Default `/metrics`. */
  readonly path?: string;
  /** Further paths with the same answer. */
  readonly otherPaths?: readonly string[];
};

/** An HTTP server for scrapers, in the shape of a lifecycle component. */
export type MetricsServer = LifecycleComponent & {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Where it listens: `http://host:port/path`. Throws before the start. */
  url(): string;
};

/** A scraper sends a line and a few headers; one that takes longer than this holds a connection for nothing. */
const requestTimeoutMs = 10_000;
/** Scrapers are few; what goes beyond this is not one. */
const maxConnections = 64;

/** Adds the metrics of the process itself: event loop lag, heap, garbage collection, CPU, descriptors. */
export function addProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
}

/** Creates a server that answers `GET` of its paths with the registry's metrics, and anything else with 404. */
export function createMetricsServer(options: MetricsServerOptions): MetricsServer {
  const { registry, host, port, path = '/metrics', otherPaths = [] } = options;
  const paths: ReadonlySet<string> = new Set([path, ...otherPaths]);
  const server = createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
    void answer(request, response);
  });
  server.maxConnections = maxConnections;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [asked] = (request.url ?? '').split('?');
    const isGet = request.method === 'GET' || request.method === 'HEAD';
    if (!isGet || asked === undefined || !paths.has(asked)) return void response.writeHead(404).end();
    try {
      const body = await registry.metrics();
      response.writeHead(200, { 'content-type': registry.contentType }).end(body);
    } catch {
      // A collector of the registry failed; the scraper records the status, which is what an operator looks at.
      response.writeHead(500).end();
    }
  }

  return {
    name: 'metrics server',
    async start() {
      server.listen({ port, ...(host && { host }) });
      await once(server, 'listening');
    },
    async stop() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      // A scrape that is cut off is repeated; waiting for a slow scraper would delay the end.
      server.closeAllConnections();
      await closed;
    },
    url() {
      const address = server.address();
      if (address === null || typeof address === 'string')
        throw new TypeError('the metrics server has not started');
      const shown = isIP(address.address) === 6 ? `[${address.address}]` : address.address;
      return `http://${shown}:${address.port}${path}`;
    },
  };
}
