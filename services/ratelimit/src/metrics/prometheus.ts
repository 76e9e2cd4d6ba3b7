// prom-client exports the metrics of the process. Ours are written from the registry: prom-client
// would copy all histograms and counters at each scrape, which with 10,000 rules would delay
// decisions, and its hashing confuses series whose label values contain `,key:`.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { getErrorMessage } from '@tollgate/kit/errors';
import {
  AggregatorRegistry,
  collectDefaultMetrics,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';
import type { ListenAddress } from '../config/stats.ts';
import { mappedMetrics } from './mapped-metrics.ts';
import type { MetricMapper } from './metric-mapper.ts';
import {
  formatFamily,
  hitMetrics,
  type MetricFamily,
  type MetricLabels,
  ruleMetrics,
  serviceMetrics,
  toMetricName,
  trialMetrics,
} from './prometheus-format.ts';
import type { StatsRegistry, StatTags } from './registry.ts';
import type { StatsSink } from './sinks.ts';

export interface PrometheusExporterOptions {
  readonly address: ListenAddress;
  readonly path: string;
  /** EXTRA_TAGS, as labels of every metric. */
  readonly extraTags: StatTags;
  readonly processMetrics?: boolean;
  /** Called before each scrape: updates the registry, returns the metrics of other processes. */
  readonly collect?: (() => Promise<readonly ProcessMetricValues[]>) | undefined;
  /** Names and labels; the default is the mapping of envoyproxy/ratelimit. */
  readonly mapper?: MetricMapper | undefined;
  /** Applies to the default mapping. */
  readonly responseTimeAsMilliseconds?: boolean;
  /** Rules with their own series in `tollgate_ratelimit_hits_total`; default 10,000. */
  readonly maxRules?: number;
}

const defaultMaxRules = 10_000;
/** Text is sent in pieces of about this size, and the event loop continues between two of them. */
const pieceChars = 32_768;
/** Enough for a handful of scrapers with a connection or two each. */
const maxConnections = 64;
const requestTimeoutMs = 10_000;

/** Serves metrics for Prometheus on a separate port. Each scrape gets the current values. */
export class PrometheusExporter implements StatsSink {
  readonly #registry: StatsRegistry;
  readonly #options: PrometheusExporterOptions;
  readonly #extraLabels: MetricLabels;
  readonly #processMetrics: ProcessMetrics;
  readonly #server: Server;

  constructor(registry: StatsRegistry, options: PrometheusExporterOptions) {
    this.#registry = registry;
    this.#options = options;
    this.#extraLabels = Object.entries(options.extraTags).map(
      ([key, value]) => [toMetricName(key), value] as const,
    );
    this.#processMetrics = new ProcessMetrics(Object.fromEntries(this.#extraLabels));
    this.#server = createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
      void this.#respond(request, response);
    });
    this.#server.maxConnections = maxConnections;
  }

  async start(): Promise<void> {
    const { address, processMetrics = true } = this.#options;
    if (processMetrics) this.#processMetrics.start();
    this.#server.listen({ port: address.port, host: address.host });
    try {
      await once(this.#server, 'listening');
    } catch (cause) {
      const reason = getErrorMessage(cause);
      throw new Error(`cannot listen on PULLMETRICS_ADDR: ${reason}`, { cause });
    }
    // Metrics must not keep the process alive.
    this.#server.unref();
  }

  flush(): void {
    // Scrapes read the registry.
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** Where it listens, once started. */
  address(): AddressInfo | undefined {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address : undefined;
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url?.split('?', 1)[0];
    if (path !== this.#options.path) return reject(response, 404, 'Not Found');
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
      await pipeline(Readable.from(this.#format()), response);
    } catch {
      // The scraper closed the connection.
      response.destroy();
    }
  }

  async *#format(): AsyncGenerator<string> {
    const others = await this.#options.collect?.();
    let piece = '';
    for await (const family of this.#families()) {
      for (const line of formatFamily(family, this.#extraLabels)) {
        piece += line;
        if (piece.length < pieceChars) continue;
        yield piece;
        piece = '';
        await nextTurn();
      }
    }
    yield `${piece}${await this.#processMetrics.format(others)}`;
  }

  async *#families(): AsyncGenerator<MetricFamily> {
    const { mapper, responseTimeAsMilliseconds = false, maxRules = defaultMaxRules } = this.#options;
    if (mapper !== undefined) {
      yield* mappedMetrics(this.#registry, mapper);
    } else {
      yield* serviceMetrics(this.#registry, { responseTimeAsMilliseconds });
      yield* ruleMetrics(this.#registry);
    }
    yield* hitMetrics(this.#registry, { maxRules });
    yield* trialMetrics(this.#registry);
  }
}

function reject(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}

/** Metrics of a process, in a form that can be sent to another process. */
export type ProcessMetricValues = readonly MetricObjectWithValues<MetricValue<string>>[];

/** CPU, memory, event loop and garbage collection of this process. */
export class ProcessMetrics {
  readonly #registry = new Registry();
  readonly #labels: Readonly<Record<string, string>>;

  constructor(labels: Readonly<Record<string, string>> = {}) {
    this.#labels = labels;
    this.#registry.setDefaultLabels(labels);
  }

  /** Measures until the process ends. */
  start(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  read(): Promise<ProcessMetricValues> {
    return this.#registry.getMetricsAsJSON();
  }

  /**
   * The metrics in the text format of Prometheus, together with those of `others`: sums, but the
   * maximum of the event loop lag, because one slow process matters.
   */
  async format(others: readonly ProcessMetricValues[] = []): Promise<string> {
    if (others.length === 0) return this.#registry.metrics();
    const all = [await this.read(), ...others].map((metrics) =>
      metrics.map((metric) =>
        /eventloop_lag/.test(metric.name) ? { ...metric, aggregator: 'max' } : metric,
      ),
    );
    const sums = AggregatorRegistry.aggregate(all);
    sums.setDefaultLabels(this.#labels);
    return sums.metrics();
  }
}
