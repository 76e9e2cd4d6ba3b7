import type { Writable } from 'node:stream';
import { compareText } from '@tollgate/kit/text';
import { ruleStatPrefix, ruleStats } from './names.ts';
import type { StatsRegistry, StatsSnapshot, StatTags, TimerSample } from './registry.ts';
import type { StatsSink } from './sinks.ts';
import { tagSuffix } from './tags.ts';

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

/**
 * Writes all statistics as `name: value` lines, sorted by name, for `GET /stats` of the debug port. Timers show count, sum,
 * median and 99th percentile in milliseconds, all since the start. Rules that were never hit are left out.
 */
export function statsText(registry: StatsRegistry): string {
  const values = new Map<string, string>();
  const sums = new Map<string, number>();
  // Series whose keys differ only in what sanitising replaces share a name: the name shows their sum.
  const add = (name: string, value: number) => sums.set(name, (sums.get(name) ?? 0) + value);

  for (const counter of registry.counters()) add(labelOf(counter), counter.value);
  for (const [, counter] of registry.unknownDomains()) add(counter.name, counter.value);
  for (const gauge of registry.gauges()) add(labelOf(gauge), gauge.value);
  for (const rule of registry.rules()) {
    if (rule.totalHits === 0) continue;
    for (const [field, stat] of ruleStats) add(`${ruleStatPrefix}${rule.key}.${stat}`, rule[field]);
  }
  for (const timer of registry.timers()) {
    const { count, sumMs } = timer.histogram;
    const p50 = timer.histogram.quantileMs(0.5).toFixed(2);
    const p99 = timer.histogram.quantileMs(0.99).toFixed(2);
    values.set(labelOf(timer), `count=${count} sum=${sumMs.toFixed(2)}ms p50=${p50}ms p99=${p99}ms`);
  }
  for (const [name, sum] of sums) values.set(name, String(sum));
  return [...values.keys()]
    .sort(compareText)
    .map((name) => `${name}: ${values.get(name)}\n`)
    .join('');
}

function labelOf(stat: { readonly name: string; readonly tags: StatTags | undefined }): string {
  return stat.tags === undefined ? stat.name : stat.name + tagSuffix(stat.tags);
}
