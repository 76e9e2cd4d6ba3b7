import { joinStatKey, ruleStatPrefix, ruleStats, sanitiseStatKey } from './names.ts';
import type { Counter, CounterSample, RuleStats } from './registry.ts';

/**
 * Longer keys come from request values that were not meant as names; they share the overflow
 * series.
 */
export const maxDynamicKeyLength = 1024;

/** The level, or domain, of the overflow series. */
export const otherSeries = '_other';

interface RuleSeriesOptions {
  readonly maxDynamicRules: number;
  readonly maxOverflowDomains: number;
  readonly idleMs: number;
  readonly overflowedLookups: Counter;
  readonly droppedSeries: Counter;
}

type RuleStatField = (typeof ruleStats)[number][0];
type RuleValues = Record<RuleStatField, number>;

/**
 * Why a series is kept: an active rule, a rule of an earlier configuration, request values, or the
 * overflow.
 */
export type RuleSeriesOrigin = 'configured' | 'released' | 'dynamic' | 'overflow';

interface RuleSeries extends RuleStats {
  origin: RuleSeriesOrigin;
  /**
   * Values at the last flush; undefined until the first hit, because most rules of a large file are
   * never hit.
   */
  flushed: RuleValues | undefined;
  /** Undefined until the first flush after it was created or released. */
  lastActiveMs: number | undefined;
}

/** Statistics of all rules, configured and dynamic; the latter are bounded in number. */
export class RuleSeriesTable {
  readonly #options: RuleSeriesOptions;
  // Series by the dotted key before sanitising, which the hot path therefore skips.
  readonly #series = new Map<string, RuleSeries>();
  // Separate, because a client could create a series of this name.
  readonly #overflow = new Map<string, RuleSeries>();
  readonly #counts: Record<RuleSeriesOrigin, number> = {
    configured: 0,
    released: 0,
    dynamic: 0,
    overflow: 0,
  };

  constructor(options: RuleSeriesOptions) {
    this.#options = options;
  }

  getConfigured(domain: string, levels: readonly string[]): RuleStats {
    const key = joinStatKey(domain, levels);
    const known = this.#series.get(key);
    if (known === undefined) return this.#add(key, createSeries(domain, levels, 'configured'));
    if (known.origin !== 'configured') this.#move(known, 'configured');
    return known;
  }

  getDynamic(domain: string, levels: readonly string[]): RuleStats {
    const key = joinStatKey(domain, levels);
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    if (this.#counts.dynamic >= this.#options.maxDynamicRules || key.length > maxDynamicKeyLength)
      return this.#getOverflow(domain);
    return this.#add(key, createSeries(domain, [...levels], 'dynamic'));
  }

  /** @see StatsRegistry.releaseRules */
  release(): void {
    for (const series of this.#series.values()) {
      if (series.origin !== 'configured') continue;
      this.#move(series, 'released');
      series.lastActiveMs = undefined;
    }
  }

  /** The overflow series come last. */
  *all(): Generator<RuleStats> {
    yield* this.#series.values();
    yield* this.#overflow.values();
  }

  /** Appends a sample for each counter that changed since the last call. */
  takeChanges(nowMs: number, into: CounterSample[]): void {
    for (const series of this.#series.values()) takeChanges(series, nowMs, into);
    for (const series of this.#overflow.values()) takeChanges(series, nowMs, into);
  }

  /** @see StatsRegistry.dropIdleSeries */
  dropIdle(nowMs: number): void {
    const { maxDynamicRules, idleMs, droppedSeries } = this.#options;
    const full = {
      released: this.#counts.released > maxDynamicRules,
      dynamic: this.#counts.dynamic >= maxDynamicRules,
    };
    if (!full.released && !full.dynamic) return;
    for (const [key, series] of this.#series) {
      const { origin, lastActiveMs } = series;
      if (origin === 'configured' || origin === 'overflow' || !full[origin]) continue;
      if (lastActiveMs === undefined || nowMs - lastActiveMs < idleMs || hasChanges(series)) continue;
      this.#series.delete(key);
      this.#counts[origin] -= 1;
      droppedSeries.value += 1;
    }
  }

  #add(key: string, series: RuleSeries): RuleSeries {
    this.#counts[series.origin] += 1;
    this.#series.set(key, series);
    return series;
  }

  #move(series: RuleSeries, origin: RuleSeriesOrigin): void {
    this.#counts[series.origin] -= 1;
    this.#counts[origin] += 1;
    series.origin = origin;
  }

  #getOverflow(domain: string): RuleSeries {
    const { maxOverflowDomains, overflowedLookups } = this.#options;
    overflowedLookups.value += 1;
    const label =
      this.#overflow.has(domain) || this.#overflow.size < maxOverflowDomains ? domain : otherSeries;
    const known = this.#overflow.get(label);
    if (known !== undefined) return known;
    const created = createSeries(label, [otherSeries], 'overflow');
    this.#overflow.set(label, created);
    return created;
  }
}

const noHits: RuleValues = {
  totalHits: 0,
  overLimit: 0,
  nearLimit: 0,
  overLimitWithLocalCache: 0,
  withinLimit: 0,
  shadowMode: 0,
  totalNegativeHits: 0,
};

function createSeries(domain: string, levels: readonly string[], origin: RuleSeriesOrigin): RuleSeries {
  return {
    key: sanitiseStatKey(joinStatKey(domain, levels)),
    domain,
    levels,
    ...noHits,
    origin,
    flushed: undefined,
    lastActiveMs: undefined,
  };
}

function takeChanges(series: RuleSeries, nowMs: number, into: CounterSample[]): void {
  const changed = hasChanges(series);
  if (changed || series.lastActiveMs === undefined) series.lastActiveMs = nowMs;
  if (!changed) return;
  series.flushed ??= { ...noHits };
  for (const [field, stat] of ruleStats) {
    const value = series[field];
    const delta = value - series.flushed[field];
    if (delta === 0) continue;
    series.flushed[field] = value;
    into.push({ name: `${ruleStatPrefix}${series.key}.${stat}`, tags: undefined, value, delta });
  }
}

function hasChanges(series: RuleSeries): boolean {
  const { flushed } = series;
  for (const [field] of ruleStats) {
    if (series[field] !== (flushed === undefined ? 0 : flushed[field])) return true;
  }
  return false;
}
