import { readFile } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { isMissingFile } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import type { Settings } from '../config/settings.ts';
import { chooseSink, parseListenAddress, type StatsSinkKind } from '../config/stats.ts';
import type { MetricMapper } from './metric-mapper.ts';
import { statsNames } from './names.ts';
import type { StatsRegistry, StatsSnapshot } from './registry.ts';
import { LogSink } from './text.ts';

/**
 * A receiver of statistics. While the service runs, its methods neither throw nor wait because of
 * the receiver.
 */
export interface StatsSink {
  /**
   * Set by sinks that send single timings: at most `max` per timer are kept, and flushed every
   * `everyMs`.
   */
  readonly timings?: { readonly max: number; readonly everyMs: number };
  /** Opens the sink. Rejects only for what an operator must fix, such as a port in use. */
  start(): Promise<void>;
  /** Passes what changed. Between two flushes there may be calls with timings only. */
  flush(snapshot: StatsSnapshot): void;
  /** Sends what is left, in bounded time, and releases all resources. Idempotent. */
  close(): Promise<void>;
}

interface SinkContext {
  readonly registry: StatsRegistry;
  readonly output: Writable;
  readonly logger: Logger;
}

/**
 * Sinks by the kind that `chooseSink` returns. A new one is a file and a line here. Only the chosen
 * one is loaded.
 */
const sinks = {
  async statsd({ extraTags, statsdProtocol: protocol, statsdHost: host, statsdPort: port }, context) {
    const { createStatsdSink } = await import('./statsd.ts');
    const { registry, logger } = context;
    return createStatsdSink({ protocol, host, port, extraTags, onDropped: countDropped(registry), logger });
  },
  async tagStatsd({ extraTags, statsdHost: host, statsdPort: port, mogrifiers }, { registry, logger }) {
    const { createTagStatsdSink } = await import('./tag-statsd.ts');
    return createTagStatsdSink({
      host,
      port,
      extraTags,
      mogrifiers,
      onDropped: countDropped(registry),
      logger,
    });
  },
  async pull(settings, { registry, logger }) {
    const { PrometheusExporter } = await import('./prometheus.ts');
    return new PrometheusExporter(registry, {
      address: requireListenAddress(settings.pullMetricsAddr),
      path: settings.pullMetricsPath,
      extraTags: settings.extraTags,
      mapper: await loadMapper(settings.pullMetricsMapperYaml, logger),
      responseTimeAsMilliseconds: settings.pullMetricsResponseTimeAsMilliseconds,
    });
  },
  async log({ extraTags }, { registry, output }) {
    return new LogSink({ extraTags, output, onDropped: countDropped(registry) });
  },
} as const satisfies Record<StatsSinkKind, (settings: Settings, context: SinkContext) => Promise<StatsSink>>;

/** The sink that the settings choose; undefined with DISABLE_STATS. */
export async function createSink(settings: Settings, context: SinkContext): Promise<StatsSink | undefined> {
  const choice = chooseSink(settings);
  if (!choice.ok) {
    throw new TypeError('the choice of a sink was checked with the settings');
  }
  return choice.sink && sinks[choice.sink](settings, context);
}

/**
 * The mapping of PULLMETRICS_MAPPER_YAML; undefined for the default. Envoy Gateway names a file
 * that may not exist.
 */
async function loadMapper(path: string, logger: Logger): Promise<MetricMapper | undefined> {
  if (path === '') return undefined;
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (!isMissingFile(error)) throw error;
    logger.warn({ path }, 'metrics mapping not found, using the default mapping');
    return undefined;
  }
  const { parseMapping } = await import('./mapping-file.ts');
  const parsed = parseMapping(text);
  if (!parsed.ok) throw new Error(`PULLMETRICS_MAPPER_YAML: ${path}: ${parsed.problem}`);
  return parsed.mapper;
}

function requireListenAddress(text: string) {
  const address = parseListenAddress(text);
  if (address === undefined) {
    throw new TypeError('PULLMETRICS_ADDR was checked with the settings');
  }
  return address;
}

function countDropped(registry: StatsRegistry): (bytes: number) => void {
  const dropped = registry.counter(statsNames.droppedBytes);
  return (bytes) => {
    dropped.value += bytes;
  };
}

interface StatsFlusherOptions {
  readonly registry: StatsRegistry;
  /**
   * Undefined with DISABLE_STATS: nothing is sent, but the bounds of the registry are still
   * enforced.
   */
  readonly sink: StatsSink | undefined;
  readonly flushIntervalMs: number;
  /** Unix time in milliseconds; default the system clock. */
  readonly nowMs?: () => number;
  /**
   * Runs a task repeatedly until the returned function is called. Default: an unreferenced
   * `setInterval`.
   */
  readonly repeatEvery?: (intervalMs: number, task: () => void) => () => void;
}

/** Moves statistics from the registry to the sink. */
export class StatsFlusher {
  readonly #options: StatsFlusherOptions;
  readonly #nowMs: () => number;
  readonly #cancels: (() => void)[] = [];
  #closed: boolean = false;

  constructor(options: StatsFlusherOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
  }

  /** Starts the sink, then flushes at every interval. Rejects when the sink cannot start. */
  async start(): Promise<void> {
    const { registry, sink, flushIntervalMs, repeatEvery = repeatUnreferenced } = this.#options;
    await sink?.start();
    if (this.#closed) return;
    const timings = sink?.timings;
    registry.keepTimings(timings?.max ?? 0);
    this.#cancels.push(repeatEvery(flushIntervalMs, () => this.flush()));
    if (timings !== undefined && timings.everyMs < flushIntervalMs) {
      this.#cancels.push(repeatEvery(timings.everyMs, () => this.#flushTimings()));
    }
  }

  flush(): void {
    const { registry, sink } = this.#options;
    const now = this.#nowMs();
    const snapshot = registry.takeSnapshot(now);
    sink?.flush(snapshot);
    registry.dropIdleSeries(now);
  }

  /** Flushes once more and closes the sink. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const cancel of this.#cancels) cancel();
    this.flush();
    this.#options.registry.keepTimings(0);
    await this.#options.sink?.close();
  }

  #flushTimings(): void {
    const { registry, sink } = this.#options;
    const timers = registry.takeTimings();
    if (timers.length > 0) sink?.flush({ counters: [], gauges: [], timers });
  }
}

function repeatUnreferenced(intervalMs: number, task: () => void): () => void {
  const timer = setInterval(task, intervalMs).unref();
  return () => clearInterval(timer);
}
