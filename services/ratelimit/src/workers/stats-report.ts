import type { ActivityReport } from '../decision/activity.ts';
import { type HistogramChanges, TimingHistogram } from '../metrics/histogram.ts';
import { combinedGauges, ruleStats, trialStats } from '../metrics/names.ts';
import type { ProcessMetricValues } from '../metrics/prometheus.ts';
import type { GaugeSample, RuleStats, StatsRegistry, StatTags, TimerSample } from '../metrics/registry.ts';
import type { TrialSeries, TrialSet } from '../metrics/trial-series.ts';
import type { TrialReport } from '../trial/report.ts';

interface CounterChange {
  readonly name: string;
  readonly tags: StatTags | undefined;
  readonly delta: number;
}

interface RuleChange {
  readonly domain: string;
  readonly levels: readonly string[];
  readonly configured: boolean;
  /** In the order of `ruleStats`. */
  readonly deltas: readonly number[];
}

interface TimerChange extends TimerSample {
  readonly recorded: HistogramChanges;
}

interface TrialChange {
  readonly set: TrialSet;
  readonly series: readonly (Pick<TrialSeries, 'domain' | 'rule' | 'limit'> & {
    /** In the order of `trialStats`. */
    readonly deltas: readonly number[];
  })[];
}

/** Changes of the statistics of a worker since its last report, and all its gauges. */
export interface StatsReport {
  readonly counters: readonly CounterChange[];
  readonly unknownDomains: readonly (readonly [domain: string, delta: number])[];
  readonly rules: readonly RuleChange[];
  readonly ruleReleases: number;
  readonly gauges: readonly GaugeSample[];
  readonly timers: readonly TimerChange[];
  /** Absent while no rules on trial were loaded. */
  readonly trial?: TrialChange | undefined;
  /** Only on request, and with `ADMIN_PORT`. */
  readonly activity?: ActivityReport | undefined;
  /** Only on request, and with `USE_PULLMETRICS`. */
  readonly processMetrics?: ProcessMetricValues | undefined;
}

/** Takes reports from the statistics of a worker. */
export class StatsReporter {
  readonly #registry: StatsRegistry;
  /** Values that were reported, by counter. */
  readonly #reported = new WeakMap<object, number>();
  readonly #reportedRules = new WeakMap<RuleStats, readonly number[]>();
  readonly #reportedTrials = new WeakMap<TrialSeries, readonly number[]>();
  readonly #reportedTimers = new WeakMap<object, TimingHistogram>();

  constructor(registry: StatsRegistry) {
    this.#registry = registry;
  }

  /** The first report has all counters and timers, so that their series exist from the start. */
  take(): StatsReport {
    const registry = this.#registry;
    const counters: CounterChange[] = [];
    for (const counter of registry.counters()) {
      const delta = this.#takeDelta(counter);
      if (delta !== undefined) counters.push({ name: counter.name, tags: counter.tags, delta });
    }
    const unknownDomains: [string, number][] = [];
    for (const [domain, counter] of registry.unknownDomains()) {
      const delta = this.#takeDelta(counter);
      if (delta !== undefined) unknownDomains.push([domain, delta]);
    }
    return {
      counters,
      unknownDomains,
      rules: [...this.#takeRules()],
      ruleReleases: registry.ruleReleases(),
      gauges: Array.from(registry.gauges(), ({ name, tags, value }) => ({ name, tags, value })),
      timers: [...this.#takeTimers()],
      trial: this.#takeTrial(),
    };
  }

  #takeDelta(counter: { readonly value: number }): number | undefined {
    const reported = this.#reported.get(counter);
    if (reported === counter.value) return undefined;
    this.#reported.set(counter, counter.value);
    return counter.value - (reported ?? 0);
  }

  *#takeRules(): Generator<RuleChange> {
    for (const rule of this.#registry.rules()) {
      if (rule.totalHits === 0 && rule.totalNegativeHits === 0) continue;
      const reported = this.#reportedRules.get(rule);
      const values = ruleStats.map(([field]) => rule[field]);
      const deltas = values.map((value, i) => value - (reported?.[i] ?? 0));
      if (deltas.every((delta) => delta === 0)) continue;
      this.#reportedRules.set(rule, values);
      const { domain, levels, origin } = rule;
      yield { domain, levels, configured: origin === 'configured' || origin === 'released', deltas };
    }
  }

  #takeTrial(): TrialChange | undefined {
    const trial = this.#registry.trial();
    if (trial === undefined) return undefined;
    const changed: TrialChange['series'][number][] = [];
    for (const series of trial.all()) {
      const reported = this.#reportedTrials.get(series);
      const values = trialStats.map(([field]) => series[field]);
      const deltas = values.map((value, i) => value - (reported?.[i] ?? 0));
      if (deltas.every((delta) => delta === 0)) continue;
      this.#reportedTrials.set(series, values);
      const { domain, rule, limit } = series;
      changed.push({ domain, rule, limit, deltas });
    }
    return { set: trial.set, series: changed };
  }

  *#takeTimers(): Generator<TimerChange> {
    for (const timer of this.#registry.timers()) {
      const { name, tags, histogram } = timer;
      const reported = this.#reportedTimers.get(timer);
      if (reported?.count === histogram.count) continue;
      const recorded = histogram.changesSince(reported ?? new TimingHistogram());
      const next = reported ?? new TimingHistogram();
      next.add(recorded);
      this.#reportedTimers.set(timer, next);
      yield { name, tags, recorded, timingsMs: timer.take() };
    }
  }
}

/**
 * Adds the reports of workers to a registry. Counters and histograms keep what a worker counted
 * before it ended; its gauges are removed.
 */
export class StatsSums {
  readonly #registry: StatsRegistry;
  /** Values by worker, of each gauge. */
  readonly #gauges = new Map<string, Map<number, number>>();
  readonly #ruleReleases = new Map<number, number>();

  constructor(registry: StatsRegistry) {
    this.#registry = registry;
  }

  add(worker: number, report: StatsReport): void {
    const registry = this.#registry;
    for (const { name, tags, delta } of report.counters) registry.counter(name, tags).value += delta;
    for (const [domain, delta] of report.unknownDomains) registry.domainNotFound(domain).value += delta;
    this.#releaseRules(worker, report.ruleReleases);
    for (const change of report.rules) this.#addRule(change);
    if (report.trial !== undefined) this.#addTrial(report.trial);
    for (const gauge of report.gauges) this.#gaugeValues(gauge).set(worker, gauge.value);
    for (const { name, tags, recorded, timingsMs } of report.timers) {
      registry.timer(name, tags).add(recorded, timingsMs);
    }
  }

  /** Forgets the gauges of a worker that ended. */
  remove(worker: number): void {
    this.#ruleReleases.delete(worker);
    for (const values of this.#gauges.values()) values.delete(worker);
  }

  /** As in the workers: series of removed rules are dropped when there are too many. */
  #releaseRules(worker: number, releases: number): void {
    const known = this.#ruleReleases.get(worker) ?? 0;
    this.#ruleReleases.set(worker, releases);
    if (releases > known) this.#registry.releaseRules();
  }

  #addRule({ domain, levels, configured, deltas }: RuleChange): void {
    const rule = configured
      ? this.#registry.rule(domain, levels)
      : this.#registry.dynamicRule(domain, levels);
    for (const [i, [field]] of ruleStats.entries()) rule[field] += deltas[i] ?? 0;
  }

  /** Counts of rules that another worker has replaced already are of no use. */
  #addTrial({ set, series }: TrialChange): void {
    const current = this.#registry.trial();
    const isNewer =
      current === undefined || (current.set.version !== set.version && current.set.sinceMs < set.sinceMs);
    const trial = isNewer ? this.#registry.startTrial(set) : current;
    if (trial.set.version !== set.version) return;
    for (const { domain, rule, limit, deltas } of series) {
      const counts = rule === undefined ? trial.domain(domain) : trial.rule(domain, rule, limit);
      for (const [i, [field]] of trialStats.entries()) counts[field] += deltas[i] ?? 0;
    }
  }

  #gaugeValues({ name, tags }: GaugeSample): Map<number, number> {
    const identity = JSON.stringify([name, tags]);
    const known = this.#gauges.get(identity);
    if (known !== undefined) return known;
    const values = new Map<number, number>();
    this.#gauges.set(identity, values);
    this.#registry.gauge(name, () => combine(name, values), tags);
    return values;
  }
}

function combine(name: string, values: ReadonlyMap<number, number>): number {
  const all = [...values.values()];
  if (all.length === 0) return 0;
  const combination = combinedGauges[name];
  return combination === undefined ? all.reduce((sum, value) => sum + value, 0) : Math[combination](...all);
}

/** Sums over all workers, which the supervisor has: of the debug port, and of the counter API. */
export interface SummedPages {
  readonly activity: ActivityReport;
  readonly '/stats': string;
  readonly '/trial': TrialReport;
}

/** A message from the supervisor to a worker. */
export type WorkerRequest =
  /** Open the ports. */
  | { readonly kind: 'listen' }
  /** Send a report; keep up to `maxTimings` single timings for the next one. */
  | {
      readonly kind: 'report';
      readonly id: number;
      readonly maxTimings: number;
      readonly processMetrics: boolean;
      readonly activity: boolean;
    }
  /** The answer to a request of the same id. */
  | { readonly kind: 'page'; readonly id: number; readonly content: SummedPages[keyof SummedPages] }
  /** Comes with the socket of a connection to the debug port. */
  | { readonly kind: 'debug connection' }
  | { readonly kind: 'stop'; readonly reason: string };

/** A message from a worker to the supervisor. */
export type WorkerMessage =
  /** Rules and counter store are there: the ports can be opened. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'listening' }
  /** Without `id`, the last one before the worker ends. */
  | { readonly kind: 'report'; readonly id?: number; readonly report: StatsReport }
  | { readonly kind: 'page'; readonly id: number; readonly page: keyof SummedPages };
