import type { Writable } from 'node:stream';
import type { Logger } from '@tollgate/kit/logger';
import { statsNames } from './names.ts';
import { createPullExporter, type PullExporterOptions } from './prometheus.ts';
import type { StatsRegistry, StatsSnapshot, StatTags } from './registry.ts';
import { createStatsdSink, type StatsdOptions } from './statsd.ts';
import { createLogSink } from './text.ts';

/** Where statistics go. None of its calls may throw because of, or wait for, the other side while the service runs. */
export interface StatsSink {
  /** As in `statsSinks`; for logs. */
  readonly name: string;
  /** Set by sinks that send single timings: at most `max` per timer are kept for them, and handed over every `everyMs`. */
  readonly timings?: { readonly max: number; readonly everyMs: number };
  /** Opens what the sink needs. Rejects only for what an operator must mend, such as a port in use. */
  start(): Promise<void>;
  /** Hands over what changed. Between two flushes there may be calls with nothing but timings. */
  flush(snapshot: StatsSnapshot): void;
  /** Sends what is left, within a bound, and releases everything. Idempotent. */
  close(): Promise<void>;
}

/** Settings of all sinks; each takes its own part. */
export interface StatsSinkOptions {
  /** `EXTRA_TAGS`. */
  readonly extraTags: StatTags;
  readonly statsd: Omit<StatsdOptions, 'extraTags'>;
  readonly pull: Omit<PullExporterOptions, 'extraTags'>;
}

/** What sinks work with. */
interface StatsSinkDeps {
  readonly registry: StatsRegistry;
  /** Standard output. */
  readonly output: Writable;
  readonly logger: Logger;
}

/** How one sink is made. */
export interface StatsSinkModule {
  create(options: StatsSinkOptions, deps: StatsSinkDeps): StatsSink;
}

/** All sinks there are, by the kind that `chooseSink` names. A new one is a file and a line here. */
export const statsSinks = {
  statsd: {
    create: ({ statsd, extraTags }, { registry, logger }) =>
      createStatsdSink({ ...statsd, extraTags }, { onDropped: countDropped(registry), logger }),
  },
  pull: {
    create: ({ pull, extraTags }, { registry }) => createPullExporter({ ...pull, extraTags }, { registry }),
  },
  log: {
    create: ({ extraTags }, { registry, output }) =>
      createLogSink({ extraTags }, { output, onDropped: countDropped(registry) }),
  },
} as const satisfies Record<string, StatsSinkModule>;

/** The kinds of sink that can be made. */
export type StatsSinkKind = keyof typeof statsSinks;

function countDropped(registry: StatsRegistry): (bytes: number) => void {
  const dropped = registry.counter(statsNames.droppedBytes);
  return (bytes) => {
    dropped.value += bytes;
  };
}

/** Runs a task again and again until the returned function is called. */
type RepeatEvery = (intervalMs: number, task: () => void) => () => void;

/** What the flusher works with. */
export interface StatsFlusherDeps {
  readonly registry: StatsRegistry;
  /** Undefined with `DISABLE_STATS`: nothing is sent, but the registry is still kept in its bounds. */
  readonly sink: StatsSink | undefined;
  /** Unix time in milliseconds; default the system clock. */
  readonly nowMs?: () => number;
  /** Default: `setInterval` that does not keep the process alive. */
  readonly repeatEvery?: RepeatEvery;
}

/** Moves statistics from the registry to the sink. */
export interface StatsFlusher {
  /** Starts the sink, then flushes at every interval. Rejects when the sink cannot start. */
  start(): Promise<void>;
  /** Flushes now. */
  flush(): void;
  /** Flushes once more and closes the sink. Idempotent. */
  close(): Promise<void>;
}

/** Makes a flusher. `flushIntervalMs` is `STATS_FLUSH_INTERVAL`. */
export function createStatsFlusher(
  options: { readonly flushIntervalMs: number },
  deps: StatsFlusherDeps,
): StatsFlusher {
  const { registry, sink, nowMs = Date.now, repeatEvery = repeatUnreferenced } = deps;
  const timings = sink?.timings;
  const cancels: (() => void)[] = [];
  let closed = false;

  function flush(): void {
    const now = nowMs();
    sink?.flush(registry.takeSnapshot(now));
    if (sink === undefined) registry.takeSnapshot(now);
    registry.dropIdleSeries(now);
  }

  function flushTimings(): void {
    const taken = registry.takeTimings();
    if (taken.length > 0) sink?.flush({ counters: [], gauges: [], timers: taken });
  }

  return {
    async start() {
      await sink?.start();
      if (closed) return;
      registry.keepTimings(timings?.max ?? 0);
      cancels.push(repeatEvery(options.flushIntervalMs, flush));
      if (timings !== undefined && timings.everyMs < options.flushIntervalMs) {
        cancels.push(repeatEvery(timings.everyMs, flushTimings));
      }
    },
    flush,
    async close() {
      if (closed) return;
      closed = true;
      for (const cancel of cancels) cancel();
      flush();
      registry.keepTimings(0);
      await sink?.close();
    },
  };
}

function repeatUnreferenced(intervalMs: number, task: () => void): () => void {
  const timer = setInterval(task, intervalMs).unref();
  return () => clearInterval(timer);
}
