import type { Writable } from 'node:stream';
import { compareText } from '@tollgate/kit/text';
import { ruleStatPrefix, ruleStats, tagSuffix, trialStats } from './names.ts';
import type { StatsRegistry, StatsSnapshot, StatTags, TimerSample } from './registry.ts';
import type { StatsSink } from './sinks.ts';

interface LogSinkOptions {
  readonly extraTags: StatTags;
  /** Standard output; the sink does not end it. */
  readonly output: Writable;
  /** Called with the number of bytes that were dropped because the output is blocked. */
  readonly onDropped: (bytes: number) => void;
}

/** Timings per flush in the summary; more would hardly change it. */
const maxTimings = 10_000;

/**
 * Writes a line `name: value` for each statistic that changed since the previous flush. Counters
 * show their total and the difference, timers the count, mean and maximum.
 */
export class LogSink implements StatsSink {
  readonly timings = { max: maxTimings, everyMs: Number.POSITIVE_INFINITY };
  readonly #options: LogSinkOptions;
  readonly #lastGauges = new Map<string, number>();

  constructor(options: LogSinkOptions) {
    this.#options = options;
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  flush(snapshot: StatsSnapshot): void {
    const { output, onDropped } = this.#options;
    const text = [...this.#format(snapshot)].map((line) => `${line}\n`).join('');
    if (text === '') return;
    // A pipe without a reader must not fill the memory.
    if (output.writableNeedDrain) onDropped(Buffer.byteLength(text));
    else output.write(text);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  *#format(snapshot: StatsSnapshot): Generator<string> {
    for (const sample of snapshot.counters)
      yield `${this.#getLabel(sample)}: ${sample.value} (+${sample.delta})`;
    for (const sample of snapshot.gauges) {
      const label = this.#getLabel(sample);
      if (this.#lastGauges.get(label) === sample.value) continue;
      this.#lastGauges.set(label, sample.value);
      yield `${label}: ${sample.value}`;
    }
    for (const sample of snapshot.timers) yield `${this.#getLabel(sample)}: ${summarize(sample)}`;
  }

  #getLabel({ name, tags }: { name: string; tags: StatTags | undefined }): string {
    return `${name}${tagSuffix(this.#options.extraTags, tags)}`;
  }
}

function summarize({ timingsMs }: TimerSample): string {
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
 * All statistics as sorted lines `name: value`, for `GET /stats` of the debug port. Timers show
 * count, sum, median and 99th percentile since the start. Rules without hits and refunds are left
 * out.
 */
export function formatStats(registry: StatsRegistry): string {
  const values = new Map<string, string>();
  const sums = new Map<string, number>();
  // Series whose keys are equal after sanitising share a name, which shows their sum.
  const add = (name: string, value: number) => sums.set(name, (sums.get(name) ?? 0) + value);

  for (const counter of registry.counters()) add(getName(counter), counter.value);
  for (const [, counter] of registry.unknownDomains()) add(counter.name, counter.value);
  for (const gauge of registry.gauges()) add(getName(gauge), gauge.value);
  for (const rule of registry.rules()) {
    if (rule.totalHits === 0 && rule.totalNegativeHits === 0) continue;
    for (const [field, stat] of ruleStats) add(`${ruleStatPrefix}${rule.key}.${stat}`, rule[field]);
  }
  for (const series of registry.trial()?.all() ?? []) {
    for (const [field, stat] of trialStats) add(`${series.statPrefix}${stat}`, series[field]);
  }
  for (const timer of registry.timers()) {
    const { count, sumMs } = timer.histogram;
    const p50 = timer.histogram.quantileMs(0.5).toFixed(2);
    const p99 = timer.histogram.quantileMs(0.99).toFixed(2);
    values.set(getName(timer), `count=${count} sum=${sumMs.toFixed(2)}ms p50=${p50}ms p99=${p99}ms`);
  }
  for (const [name, sum] of sums) values.set(name, String(sum));
  return [...values.keys()]
    .sort(compareText)
    .map((name) => `${name}: ${values.get(name)}\n`)
    .join('');
}

function getName(stat: { readonly name: string; readonly tags: StatTags | undefined }): string {
  return stat.tags === undefined ? stat.name : stat.name + tagSuffix(stat.tags);
}
