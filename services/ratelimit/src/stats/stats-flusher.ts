import type { StatsRegistry } from './stats-registry.ts';
import type { StatsSink } from './stats-sink.ts';

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
