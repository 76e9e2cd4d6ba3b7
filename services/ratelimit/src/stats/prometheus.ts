// prom-client gives the metrics of the process; ours are written from the registry, because prom-client cannot take a
// histogram or counter that is kept elsewhere except by copying all of them into its own at each scrape. With 10,000 rules
// that would hold up decisions, and series whose label values contain `,key:` would be mixed up by its hashing.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { ListenAddress } from '../config/stats.ts';
import { familyLines, type MetricFamily, metricName, serviceMetrics } from './prometheus-format.ts';
import { type Breathe, ruleMetrics } from './prometheus-rules.ts';
import type { StatsRegistry, StatTags } from './registry.ts';
import type { StatsSink } from './sinks.ts';

/** Turns statistics into metrics. A custom mapper file is another one of these. */
type MetricsMapping = (registry: StatsRegistry, breathe: Breathe) => AsyncIterable<MetricFamily>;

/** How metrics are exported. */
export interface PullExporterOptions {
  /** `PULLMETRICS_ADDR`, read by `parseListenAddress`. */
  readonly address: ListenAddress;
  /** `PULLMETRICS_PATH`, default `/metrics`. */
  readonly path: string;
  /** `EXTRA_TAGS`: labels of every metric. */
  readonly extraTags: StatTags;
  /** Whether to export metrics of the process and of Node; default true. */
  readonly processMetrics?: boolean;
  /** `PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS`; default false. */
  readonly responseTimeAsMilliseconds?: boolean;
  /** Rules with series of their own in `tollgate_ratelimit_hits_total`; default 10,000. */
  readonly maxRules?: number;
  /** Default: the mapping that `responseTimeAsMilliseconds` and `maxRules` describe. */
  readonly mapping?: MetricsMapping;
}

/** The sink that waits to be asked. */
export interface PullExporter extends StatsSink {
  /** Where it listens, once started. */
  address(): AddressInfo | undefined;
}

const defaultMaxRules = 10_000;
/** Text is handed to the connection in pieces of about this size, and other work runs between two of them. */
const pieceChars = 32_768;
/** A handful of scrapers, each with a connection or two; more is a mistake and must not eat our memory. */
const maxConnections = 64;
const requestTimeoutMs = 10_000;

/** Makes the exporter: an HTTP server of its own that answers each scrape with the values as they are then. */
export function createPullExporter(
  options: PullExporterOptions,
  deps: { readonly registry: StatsRegistry },
): PullExporter {
  const mapping = options.mapping ?? defaultMapping(options);
  const extraLabels = Object.entries(options.extraTags).map(
    ([key, value]) => [metricName(key), value] as const,
  );
  const processRegistry = new Registry();
  processRegistry.setDefaultLabels(Object.fromEntries(extraLabels));

  async function* exposition(): AsyncGenerator<string> {
    let piece = '';
    for await (const family of mapping(deps.registry, breathe)) {
      for (const line of familyLines(family, extraLabels)) {
        piece += line;
        if (piece.length < pieceChars) continue;
        yield piece;
        piece = '';
        await breathe();
      }
    }
    yield `${piece}${await processRegistry.metrics()}`;
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url?.split('?', 1)[0];
    if (path !== options.path) return reject(response, 404, 'Not Found');
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return reject(response, 405, 'Method Not Allowed');
    }
    response.setHeader('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE);
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    try {
      await pipeline(Readable.from(exposition()), response);
    } catch {
      // The scraper went away; there is nobody to tell.
      response.destroy();
    }
  }

  const server = createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
    void answer(request, response);
  });
  server.maxConnections = maxConnections;

  return {
    name: 'pull',
    async start() {
      if (options.processMetrics ?? true) collectDefaultMetrics({ register: processRegistry });
      server.listen({ port: options.address.port, host: options.address.host });
      try {
        await once(server, 'listening');
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new Error(`cannot listen where PULLMETRICS_ADDR says: ${reason}`, { cause });
      }
      // Metrics must not keep the process alive.
      server.unref();
    },
    flush() {
      // Scrapes read the registry themselves.
    },
    async close() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
    address() {
      const address = server.address();
      return typeof address === 'object' && address !== null ? address : undefined;
    },
  };
}

function defaultMapping(options: PullExporterOptions): MetricsMapping {
  const { responseTimeAsMilliseconds = false, maxRules = defaultMaxRules } = options;
  return async function* (registry, breathing) {
    yield* serviceMetrics(registry, { responseTimeAsMilliseconds });
    yield* ruleMetrics(registry, { maxRules }, breathing);
  };
}

async function breathe(): Promise<void> {
  await nextTurn();
}

function reject(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}
