import { compareText } from '@tollgate/kit/text';
import type { RuleTally } from '../ratelimit/stats.ts';
import { createTimingHistogram, type TimingHistogram } from './histogram.ts';
import { domainNotFoundStat, ruleStatPrefix, sanitiseStatKey, statsNames } from './names.ts';
import { createRuleTable, maxDynamicKeyLength, otherSeries } from './rule-series.ts';

/** Tags of one statistic, for example `{ code: 'success' }`. Sinks write them as their format wants. */
export type StatTags = Readonly<Record<string, string>>;

/** A number that only grows. The hot path does `counter.value += n`. */
export interface Counter {
  readonly name: string;
  readonly tags: StatTags | undefined;
  value: number;
}

/** A number that goes up and down. */
export interface Gauge {
  readonly name: string;
  readonly tags: StatTags | undefined;
  value: number;
}

/** Durations in milliseconds: a histogram since the start, and single timings for sinks that want them. */
export interface Timer {
  readonly name: string;
  readonly tags: StatTags | undefined;
  readonly histogram: TimingHistogram;
  record(ms: number): void;
}

/** The counters of one rule. Plain numbers: the decision path adds to them. */
export interface RuleCounters extends RuleTally {
  /** Sanitised `domain.level.level`. */
  readonly key: string;
  /** The domain as configured. */
  readonly domain: string;
  /** The metric levels as given, such as `key_value`. */
  readonly levels: readonly string[];
  totalHits: number;
}

/** One counter that changed since the snapshot before. */
export interface CounterSample {
  readonly name: string;
  readonly tags: StatTags | undefined;
  readonly value: number;
  readonly delta: number;
}

/** One gauge as it stands. */
export interface GaugeSample {
  readonly name: string;
  readonly tags: StatTags | undefined;
  readonly value: number;
}

/** The timings of one timer since they were last taken, in milliseconds. */
export interface TimerSample {
  readonly name: string;
  readonly tags: StatTags | undefined;
  readonly timingsMs: readonly number[];
}

/** What a sink gets at a flush: counters that changed, all gauges, and single timings. */
export interface StatsSnapshot {
  readonly counters: readonly CounterSample[];
  readonly gauges: readonly GaugeSample[];
  readonly timers: readonly TimerSample[];
}

/** Bounds of a registry. */
export interface StatsRegistryOptions {
  /** How many series with runtime values there may be; default 10,000. */
  readonly maxDynamicRules?: number;
  /** How many unknown domains are counted by name; default 1,000. */
  readonly maxUnknownDomains?: number;
  /** How long a dynamic series is kept without a hit once the registry is full; default one hour. */
  readonly idleMs?: number;
}

/** All statistics of the process, each kept once. Sinks and the debug page read, the service writes. */
export interface StatsRegistry {
  /** The counter of that name and tags, made when missing. */
  counter(name: string, tags?: StatTags): Counter;
  /** The gauge of that name and tags, made when missing. With `read` its value is asked for when needed. */
  gauge(name: string, read?: () => number, tags?: StatTags): Gauge;
  /** The timer of that name and tags, made when missing. */
  timer(name: string, tags?: StatTags): Timer;
  /** The counters of a configured rule: the same object for the same key, over reloads too. */
  rule(domain: string, levels: readonly string[]): RuleCounters;
  /**
   * The counters of a rule whose levels hold values of the request (detailed, value and override series). Their number
   * is bounded: when full, the series `<domain>._other` is returned and `ratelimit.stats.overflowed_lookups` counts.
   */
  dynamicRule(domain: string, levels: readonly string[]): RuleCounters;
  /** The counter of requests to a domain that has no configuration; bounded like `dynamicRule`. */
  domainNotFound(domain: string): Counter;
  /**
   * Lets go of all configured rules: call it just before a new configuration takes over. A rule asked for again is kept
   * with its counts; the others stay too until there are more than `maxDynamicRules` of them and they were idle for long.
   */
  releaseRules(): void;
  /** How often `releaseRules` was called. Whoever keeps what `rule` answered asks for it again when this has changed. */
  ruleReleases(): number;
  /** All counters except those of rules. */
  counters(): Iterable<Counter>;
  /** Counters of unknown domains, with the domain as it came. */
  unknownDomains(): Iterable<readonly [domain: string, counter: Counter]>;
  /** All gauges. */
  gauges(): Iterable<Gauge>;
  /** All timers. */
  timers(): Iterable<Timer>;
  /** The counters of all rules. */
  rules(): Iterable<RuleCounters>;
  /** Keeps up to `max` single timings per timer between two takes; 0 (the default) keeps none. */
  keepTimings(max: number): void;
  /** Takes the single timings and forgets them. */
  takeTimings(): TimerSample[];
  /** Takes what changed since the last call, timings included. One caller only: the flusher. `nowMs` dates activity. */
  takeSnapshot(nowMs: number): StatsSnapshot;
  /** When there are too many, drops dynamic and released series without a hit for `idleMs`; call it after a flush. */
  dropIdleSeries(nowMs: number): void;
}

const defaultMaxDynamicRules = 10_000;
const defaultMaxUnknownDomains = 1000;
const defaultIdleMs = 3_600_000;

interface CounterEntry extends Counter {
  flushed: number;
}

interface TimerEntry extends Timer {
  timingsMs: number[];
}

/** Makes an empty registry. It holds no clock, timer or socket: whoever flushes it brings the time. */
export function createStatsRegistry(options: StatsRegistryOptions = {}): StatsRegistry {
  const maxUnknownDomains = options.maxUnknownDomains ?? defaultMaxUnknownDomains;

  const counters = new Map<string, CounterEntry>();
  const gauges = new Map<string, Gauge>();
  const timers = new Map<string, TimerEntry>();
  const unknownDomains = new Map<string, CounterEntry>();
  let maxTimings = 0;
  let ruleReleases = 0;

  const counter = (name: string, tags?: StatTags): CounterEntry =>
    getOrMake(counters, identityOf(name, tags), () => makeCounter(name, tags));
  const overflowedLookups = counter(statsNames.overflowedLookups);
  const droppedTimings = counter(statsNames.droppedTimings);
  const rules = createRuleTable(
    {
      maxDynamicRules: options.maxDynamicRules ?? defaultMaxDynamicRules,
      maxOverflowDomains: maxUnknownDomains,
      idleMs: options.idleMs ?? defaultIdleMs,
    },
    { overflowedLookups, droppedSeries: counter(statsNames.droppedSeries) },
  );

  function makeTimer(name: string, tags: StatTags | undefined): TimerEntry {
    const histogram = createTimingHistogram();
    const timer: TimerEntry = {
      name,
      tags,
      histogram,
      timingsMs: [],
      record(ms) {
        histogram.record(ms);
        if (maxTimings === 0) return;
        if (timer.timingsMs.length < maxTimings) timer.timingsMs.push(ms);
        else droppedTimings.value += 1;
      },
    };
    return timer;
  }

  function takeTimings(): TimerSample[] {
    const samples: TimerSample[] = [];
    for (const timer of timers.values()) {
      if (timer.timingsMs.length === 0) continue;
      samples.push({ name: timer.name, tags: timer.tags, timingsMs: timer.timingsMs });
      timer.timingsMs = [];
    }
    return samples;
  }

  return {
    counter,
    gauge: (name, read, tags) => getOrMake(gauges, identityOf(name, tags), () => makeGauge(name, read, tags)),
    timer: (name, tags) => getOrMake(timers, identityOf(name, tags), () => makeTimer(name, tags)),
    rule: rules.configured,
    dynamicRule: rules.dynamic,
    domainNotFound(domain) {
      const known = unknownDomains.get(domain);
      if (known !== undefined) return known;
      const full = unknownDomains.size >= maxUnknownDomains || domain.length > maxDynamicKeyLength;
      if (full) overflowedLookups.value += 1;
      const label = full ? otherSeries : domain;
      return getOrMake(unknownDomains, label, () =>
        makeCounter(`${ruleStatPrefix}${sanitiseStatKey(label)}.${domainNotFoundStat}`, undefined),
      );
    },
    releaseRules() {
      ruleReleases += 1;
      rules.release();
    },
    ruleReleases: () => ruleReleases,
    counters: () => counters.values(),
    unknownDomains: () => unknownDomains.entries(),
    gauges: () => gauges.values(),
    timers: () => timers.values(),
    rules: rules.all,
    keepTimings(max) {
      maxTimings = max;
    },
    takeTimings,
    takeSnapshot(nowMs) {
      const changed: CounterSample[] = [];
      for (const entry of counters.values()) takeCounter(entry, changed);
      for (const entry of unknownDomains.values()) takeCounter(entry, changed);
      rules.takeChanged(nowMs, changed);
      const gaugeSamples = Array.from(gauges.values(), ({ name, tags, value }) => ({ name, tags, value }));
      return { counters: changed, gauges: gaugeSamples, timers: takeTimings() };
    },
    dropIdleSeries: rules.dropIdle,
  };
}

function getOrMake<T>(map: Map<string, T>, key: string, make: () => T): T {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

function identityOf(name: string, tags: StatTags | undefined): string {
  if (tags === undefined) return name;
  const parts = Object.keys(tags).sort(compareText);
  return [name, ...parts.map((key) => `${key}=${tags[key]}`)].join('\u0000');
}

function makeCounter(name: string, tags: StatTags | undefined): CounterEntry {
  return { name, tags, value: 0, flushed: 0 };
}

function makeGauge(name: string, read: (() => number) | undefined, tags: StatTags | undefined): Gauge {
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
