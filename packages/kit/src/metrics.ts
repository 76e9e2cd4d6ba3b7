import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, type Registry } from 'prom-client';
import packageJson from '../package.json' with { type: 'json' };
import type { LifecycleComponent } from './lifecycle.ts';
import { type TlsValidity, tlsMetricNames } from './tls.ts';

/** Options of a metrics server. */
export type MetricsServerOptions = {
  readonly registry: Registry;
  /** Address to listen on; all when empty. */
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** Default `/metrics`. */
  readonly path?: string;
  /** Further paths with the same response. */
  readonly otherPaths?: readonly string[];
  /**
   * Writes metrics that are not in the registry, in pieces. The event loop continues between two
   * pieces, so that a long response does not delay requests.
   */
  readonly writeOthers?: () => AsyncIterable<string>;
};

/** A scraper sends a line and a few headers. */
const requestTimeoutMs = 10_000;
/** Far more than the number of scrapers. */
const maxConnections = 64;

/**
 * Adds the version, and the metrics of the process: event loop lag, heap, garbage collection, CPU,
 * file descriptors.
 */
export function addProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
  const { version } = packageJson;
  const help = 'Version of the process, as a label. The value is 1.';
  new Gauge({ name: 'tollgate_build_info', help, labelNames: ['version'], registers: [registry] }).set(
    { version },
    1,
  );
}

/**
 * An HTTP server for scrapers. `GET` of its paths responds with the metrics of the registry, other
 * methods get 405 and other paths 404.
 */
export class MetricsServer implements LifecycleComponent {
  readonly name = 'metrics server';
  readonly #registry: Registry;
  readonly #paths: ReadonlySet<string>;
  readonly #options: MetricsServerOptions;
  readonly #server: Server;

  constructor(options: MetricsServerOptions) {
    const { registry, path = '/metrics', otherPaths = [] } = options;
    this.#options = { ...options, path };
    this.#registry = registry;
    this.#paths = new Set([path, ...otherPaths]);
    this.#server = createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
      void this.#respond(request, response);
    });
    this.#server.maxConnections = maxConnections;
  }

  async start(): Promise<void> {
    const { host, port } = this.#options;
    this.#server.listen({ port, ...(host && { host }) });
    await once(this.#server, 'listening');
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    // Scrapers retry; waiting for a slow one would delay the stop.
    this.#server.closeAllConnections();
    await closed;
  }

  /** `http://host:port/path`. Throws before the start. */
  url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string')
      throw new TypeError('the metrics server has not started');
    const host = isIP(address.address) === 6 ? `[${address.address}]` : address.address;
    return `http://${host}:${address.port}${this.#options.path}`;
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = ''] = (request.url ?? '').split('?');
    if (!this.#paths.has(path)) return void response.writeHead(404).end();
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return void response.writeHead(405, { allow: 'GET, HEAD' }).end();
    try {
      const body = await this.#registry.metrics();
      response.writeHead(200, { 'content-type': this.#registry.contentType });
      await pipeline(Readable.from(this.#write(body)), response);
    } catch {
      // A collector of the registry failed, whose status the scraper records, or it has gone.
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end();
    }
  }

  async *#write(last: string): AsyncGenerator<string> {
    for await (const piece of this.#options.writeOthers?.() ?? []) {
      yield piece;
      await nextTurn();
    }
    yield last;
  }
}

/** Metrics of certificates and TLS listeners. Label values come from a fixed set per service. */
export class TlsMetrics {
  readonly #notBefore: Gauge<'certificate'>;
  readonly #expiry: Gauge<'certificate'>;
  readonly #failures: Counter<'listener'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#notBefore = new Gauge({
      name: tlsMetricNames.certificateNotBefore,
      help: 'Unix time from which the certificate in use is valid.',
      labelNames: ['certificate'],
      registers,
    });
    this.#expiry = new Gauge({
      name: tlsMetricNames.certificateExpiry,
      help: 'Unix time at which the certificate in use expires.',
      labelNames: ['certificate'],
      registers,
    });
    this.#failures = new Counter({
      name: tlsMetricNames.handshakeFailures,
      help: 'TLS handshakes with clients that failed or were refused.',
      labelNames: ['listener'],
      registers,
    });
  }

  /**
   * Sets the validity of the certificate named `certificate`, such as `ads_server` or
   * `redis_client`.
   */
  setValidity(certificate: string, { notBeforeMs, notAfterMs }: TlsValidity): void {
    this.#notBefore.set({ certificate }, notBeforeMs / 1000);
    this.#expiry.set({ certificate }, notAfterMs / 1000);
  }

  /** Adds a listener with 0 failures; the returned function counts one. */
  handshakeFailures(listener: string): () => void {
    this.#failures.inc({ listener }, 0);
    return () => this.#failures.inc({ listener });
  }
}
