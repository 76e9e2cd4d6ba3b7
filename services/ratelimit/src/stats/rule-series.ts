import { joinStatKey, ruleStatPrefix, ruleStats, sanitiseStatKey } from './names.ts';
import type { Counter, CounterSample, RuleCounters } from './registry.ts';

/** Keys longer than this come from request values nobody meant to have as names; they share the overflow series. */
export const maxDynamicKeyLength = 1024;

/** The level, or domain, under which what does not fit is counted. */
export const otherSeries = '_other';

/** The counters of all rules, configured and dynamic; the latter bounded in number. */
export interface RuleTable {
  /** As `StatsRegistry.rule`. */
  configured(domain: string, levels: readonly string[]): RuleCounters;
  /** As `StatsRegistry.dynamicRule`. */
  dynamic(domain: string, levels: readonly string[]): RuleCounters;
  /** As `StatsRegistry.releaseRules`. */
  release(): void;
  /** Every series, those of the overflow last. */
  all(): Iterable<RuleCounters>;
  /** Appends a sample for each counter that changed since the last call. */
  takeChanged(nowMs: number, into: CounterSample[]): void;
  /** As `StatsRegistry.dropIdleSeries`. */
  dropIdle(nowMs: number): void;
}

/** Bounds of a table. */
export interface RuleTableOptions {
  readonly maxDynamicRules: number;
  /** Domains with an overflow series of their own. */
  readonly maxOverflowDomains: number;
  readonly idleMs: number;
}

type RuleStatField = (typeof ruleStats)[number][0];

/** What keeps a series: a rule in force, nothing but its past, its place among the dynamic ones, or its being the overflow. */
type Hold = 'configured' | 'released' | 'dynamic' | 'overflow';

interface RuleSeries extends RuleCounters {
  hold: Hold;
  /** Values at the last take; missing until the first hit, because most rules of a large file are never hit. */
  flushed: Record<RuleStatField, number> | undefined;
  /** Missing until the first take after it was made or released. */
  lastActiveMs: number | undefined;
}

/** Makes an empty table that counts in `deps` what it had to turn away or give up. */
export function createRuleTable(
  { maxDynamicRules, maxOverflowDomains, idleMs }: RuleTableOptions,
  deps: { readonly overflowedLookups: Counter; readonly droppedSeries: Counter },
): RuleTable {
  // Keyed by the unsanitised dotted key, so that the hot path joins and looks up but does not sanitise.
  const series = new Map<string, RuleSeries>();
  // Apart: a client could otherwise make a series of this name and take the room of the overflow.
  const overflow = new Map<string, RuleSeries>();
  const held: Record<Hold, number> = { configured: 0, released: 0, dynamic: 0, overflow: 0 };

  function admit(key: string, made: RuleSeries): RuleSeries {
    held[made.hold] += 1;
    series.set(key, made);
    return made;
  }

  function moveTo(moved: RuleSeries, hold: Hold): void {
    held[moved.hold] -= 1;
    held[hold] += 1;
    moved.hold = hold;
  }

  function overflowOf(domain: string): RuleSeries {
    deps.overflowedLookups.value += 1;
    const label = overflow.has(domain) || overflow.size < maxOverflowDomains ? domain : otherSeries;
    const known = overflow.get(label);
    if (known !== undefined) return known;
    const made = makeSeries(label, [otherSeries], 'overflow');
    overflow.set(label, made);
    return made;
  }

  return {
    configured(domain, levels) {
      const key = joinStatKey(domain, levels);
      const known = series.get(key);
      if (known === undefined) return admit(key, makeSeries(domain, levels, 'configured'));
      if (known.hold !== 'configured') moveTo(known, 'configured');
      return known;
    },
    dynamic(domain, levels) {
      const key = joinStatKey(domain, levels);
      const known = series.get(key);
      if (known !== undefined) return known;
      if (held.dynamic >= maxDynamicRules || key.length > maxDynamicKeyLength) return overflowOf(domain);
      return admit(key, makeSeries(domain, [...levels], 'dynamic'));
    },
    release() {
      for (const one of series.values()) {
        if (one.hold !== 'configured') continue;
        moveTo(one, 'released');
        one.lastActiveMs = undefined;
      }
    },
    *all() {
      yield* series.values();
      yield* overflow.values();
    },
    takeChanged(nowMs, into) {
      for (const one of series.values()) takeChanges(one, nowMs, into);
      for (const one of overflow.values()) takeChanges(one, nowMs, into);
    },
    dropIdle(nowMs) {
      const crowded = { released: held.released > maxDynamicRules, dynamic: held.dynamic >= maxDynamicRules };
      if (!crowded.released && !crowded.dynamic) return;
      for (const [key, one] of series) {
        if (one.hold === 'configured' || one.hold === 'overflow' || !crowded[one.hold]) continue;
        if (one.lastActiveMs === undefined || nowMs - one.lastActiveMs < idleMs || hasChanges(one)) continue;
        series.delete(key);
        held[one.hold] -= 1;
        deps.droppedSeries.value += 1;
      }
    },
  };
}

function makeSeries(domain: string, levels: readonly string[], hold: Hold): RuleSeries {
  return {
    key: sanitiseStatKey(joinStatKey(domain, levels)),
    domain,
    levels,
    totalHits: 0,
    overLimit: 0,
    nearLimit: 0,
    overLimitWithLocalCache: 0,
    withinLimit: 0,
    shadowMode: 0,
    hold,
    flushed: undefined,
    lastActiveMs: undefined,
  };
}

function takeChanges(series: RuleSeries, nowMs: number, into: CounterSample[]): void {
  const changed = hasChanges(series);
  if (changed || series.lastActiveMs === undefined) series.lastActiveMs = nowMs;
  if (!changed) return;
  series.flushed ??= {
    totalHits: 0,
    overLimit: 0,
    nearLimit: 0,
    overLimitWithLocalCache: 0,
    withinLimit: 0,
    shadowMode: 0,
  };
  for (const [field, stat] of ruleStats) {
    const value = series[field];
    const delta = value - series.flushed[field];
    if (delta === 0) continue;
    series.flushed[field] = value;
    into.push({ name: `${ruleStatPrefix}${series.key}.${stat}`, tags: undefined, value, delta });
  }
}

function hasChanges(series: RuleSeries): boolean {
  const flushed = series.flushed;
  for (const [field] of ruleStats) {
    if (series[field] !== (flushed === undefined ? 0 : flushed[field])) return true;
  }
  return false;
}
