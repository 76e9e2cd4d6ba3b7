import { compareText } from '@tollgate/kit/text';
import { TimingHistogram } from './histogram.ts';
import { domainNotFoundStat, ruleStatPrefix, sanitiseStatKey, statsNames } from './names.ts';
import { maxDynamicKeyLength, otherSeries, type RuleSeriesOrigin, RuleSeriesTable } from './rule-series.ts';
import { type TrialSet, TrialTable } from './trial-series.ts';

/**
 * Tags of a statistic, for example `{ code: 'success' }`. Each sink has its own format for them.
 */
export type StatTags = Readonly<Record<string, string>>;

/** A number that only grows. The hot path does `counter.value += n`. */
export interface Counter {
  readonly name: string;
  readonly tags: StatTags | undefined;
  value: number;
}

export interface Gauge {
  readonly name: string;
  readonly tags: StatTags | undefined;
  value: number;
}

/** Statistics of one rule, as plain numbers for the hot path. */
export interface RuleStats {
  /** Sanitised `domain.level.level`. */
  readonly key: string;
  readonly domain: string;
  /** The metric levels as configured, such as `key_value`. */
  readonly levels: readonly string[];
  readonly origin: RuleSeriesOrigin;
  totalHits: number;
  overLimit: number;
  nearLimit: number;
  overLimitWithLocalCache: number;
  withinLimit: number;
  shadowMode: number;
  /** Refunded hits. */
  totalNegativeHits: number;
}

/** A counter that changed since the previous snapshot. */
export interface CounterSample {
  readonly name: string;
  readonly tags: StatTags | undefined;
  readonly value: number;
  readonly delta: number;
}

export interface GaugeSample {
  readonly name: string;
  readonly tags: StatTags | undefined;
  readonly value: number;
}

/** Timings since they were last taken, in milliseconds. */
export interface TimerSample {
  readonly name: string;
  readonly tags: StatTags | undefined;
  readonly timingsMs: readonly number[];
}

/** Statistics of a flush: counters that changed, all gauges, and single timings. */
export interface StatsSnapshot {
  readonly counters: readonly CounterSample[];
  readonly gauges: readonly GaugeSample[];
  readonly timers: readonly TimerSample[];
}

interface StatsRegistryOptions {
  /** Series whose names hold request values; default 10,000. */
  readonly maxDynamicRules?: number;
  /** Unknown domains that are counted by name; default 1,000. */
  readonly maxUnknownDomains?: number;
  /** How long a series is kept without a hit once there are too many; default one hour. */
  readonly idleMs?: number;
}

const defaultMaxDynamicRules = 10_000;
const defaultMaxUnknownDomains = 1000;
const defaultIdleMs = 3_600_000;

interface CounterEntry extends Counter {
  flushed: number;
}

/**
 * Durations in milliseconds: a histogram since the start, and single timings for sinks that send
 * them.
 */
export class Timer {
  readonly name: string;
  readonly tags: StatTags | undefined;
  readonly histogram = new TimingHistogram();
  readonly #limit: TimingsLimit;
  #timingsMs: number[] = [];

  constructor(name: string, tags: StatTags | undefined, limit: TimingsLimit) {
    this.name = name;
    this.tags = tags;
    this.#limit = limit;
  }

  record(ms: number): void {
    this.histogram.record(ms);
    const { max, dropped } = this.#limit;
    if (max === 0) return;
    if (this.#timingsMs.length < max) this.#timingsMs.push(ms);
    else dropped.value += 1;
  }

  /** Returns the single timings and forgets them. */
  take(): readonly number[] {
    const taken = this.#timingsMs;
    if (taken.length > 0) this.#timingsMs = [];
    return taken;
  }
}

/** Bound of the single timings of each timer; 0 keeps none. */
interface TimingsLimit {
  max: number;
  readonly dropped: Counter;
}

/**
 * All statistics of the process. The service writes, sinks and the debug page read. It has no
 * clock, timer or socket.
 */
export class StatsRegistry {
  readonly #maxUnknownDomains: number;
  readonly #counters = new Map<string, CounterEntry>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #timers = new Map<string, Timer>();
  readonly #unknownDomains = new Map<string, CounterEntry>();
  readonly #overflowedLookups = this.counter(statsNames.overflowedLookups);
  readonly #timings: TimingsLimit = { max: 0, dropped: this.counter(statsNames.droppedTimings) };
  readonly #rules: RuleSeriesTable;
  #ruleReleases = 0;
  #trial: TrialTable | undefined;

  constructor(options: StatsRegistryOptions = {}) {
    this.#maxUnknownDomains = options.maxUnknownDomains ?? defaultMaxUnknownDomains;
    this.#rules = new RuleSeriesTable({
      maxDynamicRules: options.maxDynamicRules ?? defaultMaxDynamicRules,
      maxOverflowDomains: this.#maxUnknownDomains,
      idleMs: options.idleMs ?? defaultIdleMs,
      overflowedLookups: this.#overflowedLookups,
      droppedSeries: this.counter(statsNames.droppedSeries),
    });
  }

  counter(name: string, tags?: StatTags): Counter {
    return getOrCreate(this.#counters, getIdentity(name, tags), () => createCounter(name, tags));
  }

  /**
   * The gauge of that name and tags, created when missing. With `read`, its value is read on
   * demand.
   */
  gauge(name: string, read?: () => number, tags?: StatTags): Gauge {
    return getOrCreate(this.#gauges, getIdentity(name, tags), () => createGauge(name, read, tags));
  }

  timer(name: string, tags?: StatTags): Timer {
    return getOrCreate(this.#timers, getIdentity(name, tags), () => new Timer(name, tags, this.#timings));
  }

  /** The statistics of a configured rule: the same object for the same key, across reloads. */
  rule(domain: string, levels: readonly string[]): RuleStats {
    return this.#rules.getConfigured(domain, levels);
  }

  /**
   * The statistics of a rule whose levels hold request values (detailed, value and override
   * series). Their number is bounded: when full, this is the series `<domain>._other`, and
   * `ratelimit.stats.overflowed_lookups` counts.
   */
  dynamicRule(domain: string, levels: readonly string[]): RuleStats {
    return this.#rules.getDynamic(domain, levels);
  }

  /** The counter of requests to a domain without rules; bounded like `dynamicRule`. */
  domainNotFound(domain: string): Counter {
    const known = this.#unknownDomains.get(domain);
    if (known !== undefined) return known;
    const full = this.#unknownDomains.size >= this.#maxUnknownDomains || domain.length > maxDynamicKeyLength;
    if (full) this.#overflowedLookups.value += 1;
    const label = full ? otherSeries : domain;
    return getOrCreate(this.#unknownDomains, label, () =>
      createCounter(`${ruleStatPrefix}${sanitiseStatKey(label)}.${domainNotFoundStat}`, undefined),
    );
  }

  /**
   * Releases all configured rules, just before a new configuration becomes active. A rule that is
   * looked up again keeps its counts; the others are kept until there are more than
   * `maxDynamicRules` of them and they were idle.
   */
  releaseRules(): void {
    this.#ruleReleases += 1;
    this.#rules.release();
  }

  /**
   * Number of calls of `releaseRules`. A result of `rule` that was kept is looked up again when
   * this changes.
   */
  ruleReleases(): number {
    return this.#ruleReleases;
  }

  /** Counts of the rules on trial; undefined while none were loaded. */
  trial(): TrialTable | undefined {
    return this.#trial;
  }

  /** Starts to count for other rules on trial; the counts of the previous ones are forgotten. */
  startTrial(set: TrialSet): TrialTable {
    this.#trial = new TrialTable(set);
    return this.#trial;
  }

  /** All counters except those of rules. */
  counters(): Iterable<Counter> {
    return this.#counters.values();
  }

  /** Counters of unknown domains, with the domain as received. */
  unknownDomains(): Iterable<readonly [domain: string, counter: Counter]> {
    return this.#unknownDomains.entries();
  }

  gauges(): Iterable<Gauge> {
    return this.#gauges.values();
  }

  timers(): Iterable<Timer> {
    return this.#timers.values();
  }

  rules(): Iterable<RuleStats> {
    return this.#rules.all();
  }

  /** Keeps up to `max` single timings per timer between two takes; 0 (the default) keeps none. */
  keepTimings(max: number): void {
    this.#timings.max = max;
  }

  /** Returns the single timings and forgets them. */
  takeTimings(): TimerSample[] {
    const samples: TimerSample[] = [];
    for (const timer of this.#timers.values()) {
      const timingsMs = timer.take();
      if (timingsMs.length > 0) samples.push({ name: timer.name, tags: timer.tags, timingsMs });
    }
    return samples;
  }

  /**
   * Returns what changed since the last call, including timings. For the flusher only. `nowMs`
   * dates activity.
   */
  takeSnapshot(nowMs: number): StatsSnapshot {
    const changed: CounterSample[] = [];
    for (const entry of this.#counters.values()) takeCounter(entry, changed);
    for (const entry of this.#unknownDomains.values()) takeCounter(entry, changed);
    this.#rules.takeChanges(nowMs, changed);
    this.#trial?.takeChanges(changed);
    const gauges = Array.from(this.#gauges.values(), ({ name, tags, value }) => ({ name, tags, value }));
    return { counters: changed, gauges, timers: this.takeTimings() };
  }

  /**
   * Drops dynamic and released series without a hit for `idleMs` when there are too many. Called
   * after a flush.
   */
  dropIdleSeries(nowMs: number): void {
    this.#rules.dropIdle(nowMs);
  }
}

function getOrCreate<T>(map: Map<string, T>, key: string, create: () => T): T {
  const known = map.get(key);
  if (known !== undefined) return known;
  const created = create();
  map.set(key, created);
  return created;
}

function getIdentity(name: string, tags: StatTags | undefined): string {
  if (tags === undefined) return name;
  const parts = Object.keys(tags).sort(compareText);
  return [name, ...parts.map((key) => `${key}=${tags[key]}`)].join('\u0000');
}

function createCounter(name: string, tags: StatTags | undefined): CounterEntry {
  return { name, tags, value: 0, flushed: 0 };
}

function createGauge(name: string, read: (() => number) | undefined, tags: StatTags | undefined): Gauge {
  if (read === undefined) return { name, tags, value: 0 };
  return {
    name,
    tags,
    get value() {
      return read();
    },
  };
}

function takeCounter(entry: CounterEntry, into: CounterSample[]): void {
  const delta = entry.value - entry.flushed;
  if (delta === 0) return;
  entry.flushed = entry.value;
  into.push({ name: entry.name, tags: entry.tags, value: entry.value, delta });
}
