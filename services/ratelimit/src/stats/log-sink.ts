import type { Writable } from 'node:stream';
import { tagSuffix } from './stat-tags.ts';
import type { StatsSnapshot, StatTags, TimerSample } from './stats-registry.ts';
import type { StatsSink } from './stats-sink.ts';

/** What the log sink writes to. */
export interface LogSinkDeps {
  /** Standard output; not ended by the sink. */
  readonly output: Writable;
  /** Called with the number of bytes that were given up because the output does not take more. */
  readonly onDropped: (bytes: number) => void;
}

/** Timings of one flush that are summed up; more would only make the line more exact. */
const maxTimings = 10_000;

/**
 * Makes the sink that writes `name: value` lines, one for each statistic that changed since the flush before. Counters
 * show their total and what was added, timers how many timings there were, their mean and their maximum.
 */
export function createLogSink(options: { readonly extraTags: StatTags }, deps: LogSinkDeps): StatsSink {
  const lastGauges = new Map<string, number>();
  const labelOf = (sample: { name: string; tags: StatTags | undefined }) =>
    `${sample.name}${tagSuffix(options.extraTags, sample.tags)}`;

  function* linesOf(snapshot: StatsSnapshot): Generator<string> {
    for (const sample of snapshot.counters) yield `${labelOf(sample)}: ${sample.value} (+${sample.delta})`;
    for (const sample of snapshot.gauges) {
      const label = labelOf(sample);
      if (lastGauges.get(label) === sample.value) continue;
      lastGauges.set(label, sample.value);
      yield `${label}: ${sample.value}`;
    }
    for (const sample of snapshot.timers) yield `${labelOf(sample)}: ${summaryOf(sample)}`;
  }

  return {
    name: 'log',
    timings: { max: maxTimings, everyMs: Number.POSITIVE_INFINITY },
    start: () => Promise.resolve(),
    flush(snapshot) {
      const text = [...linesOf(snapshot)].map((line) => `${line}\n`).join('');
      if (text === '') return;
      // A pipe that nobody reads must not fill our memory.
      if (deps.output.writableNeedDrain) deps.onDropped(Buffer.byteLength(text));
      else deps.output.write(text);
    },
    close: () => Promise.resolve(),
  };
}

function summaryOf({ timingsMs }: TimerSample): string {
  let sum = 0;
  let max = 0;
  for (const ms of timingsMs) {
    sum += ms;
    max = Math.max(max, ms);
  }
  const mean = sum / timingsMs.length;
  return `count=${timingsMs.length} mean=${mean.toFixed(2)}ms max=${max.toFixed(2)}ms`;
}
