// The process metrics and the server are those of all services. Statistics are written from the
// registry of the limiter, which costs less than prom-client: see decision 93.

import { getErrorMessage } from '@tollgate/kit/errors';
import { addProcessMetrics, MetricsServer } from '@tollgate/kit/metrics';
import { Registry } from 'prom-client';
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
  /** Names and labels; the default is the mapping of envoyproxy/ratelimit. */
  readonly mapper?: MetricMapper | undefined;
  /** Applies to the default mapping. */
  readonly responseTimeAsMilliseconds?: boolean;
  /** Rules with their own series in `tollgate_ratelimit_hits_total`; default 10,000. */
  readonly maxRules?: number;
}

const defaultMaxRules = 10_000;
/** Text is written in pieces of about this size. */
const pieceChars = 32_768;

/** Serves metrics for Prometheus on a separate port. Each scrape gets the current values. */
export class PrometheusExporter implements StatsSink {
  readonly #registry: StatsRegistry;
  readonly #options: PrometheusExporterOptions;
  readonly #extraLabels: MetricLabels;
  readonly #server: MetricsServer;

  constructor(registry: StatsRegistry, options: PrometheusExporterOptions) {
    const { address, path, extraTags, processMetrics = true } = options;
    this.#registry = registry;
    this.#options = options;
    this.#extraLabels = Object.entries(extraTags).map(([key, value]) => [toMetricName(key), value] as const);
    const ofProcess = new Registry();
    ofProcess.setDefaultLabels(Object.fromEntries(this.#extraLabels));
    if (processMetrics) addProcessMetrics(ofProcess);
    this.#server = new MetricsServer({
      registry: ofProcess,
      host: address.host ?? '',
      port: address.port,
      path,
      writeOthers: () => this.#write(),
    });
  }

  async start(): Promise<void> {
    try {
      await this.#server.start();
    } catch (cause) {
      const reason = getErrorMessage(cause);
      throw new Error(`cannot listen on PULLMETRICS_ADDR: ${reason}`, { cause });
    }
  }

  flush(): void {
    // Scrapes read the registry.
  }

  close(): Promise<void> {
    return this.#server.stop();
  }

  /** Where it listens, once started. */
  url(): string {
    return this.#server.url();
  }

  async *#write(): AsyncGenerator<string> {
    let piece = '';
    for await (const family of this.#families()) {
      for (const line of formatFamily(family, this.#extraLabels)) {
        piece += line;
        if (piece.length < pieceChars) continue;
        yield piece;
        piece = '';
      }
    }
    yield piece;
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
