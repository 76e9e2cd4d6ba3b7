import type { StoreFailurePolicy } from '@tollgate/rules/rule-set';
import { statsNames } from '../metrics/names.ts';
import type { Counter, RuleStats, StatsRegistry } from '../metrics/registry.ts';
import { type LimitCheck, requireResult } from './check.ts';
import type { Limit } from './find-limit.ts';
import type { DecisionOptions } from './options.ts';
import { Code } from './wire/response.ts';

export class DecisionStats {
  readonly serviceError: Counter;
  readonly backendError: Counter;
  readonly globalShadowMode: Counter;
  readonly decisions: { readonly ok: Counter; readonly nearLimit: Counter; readonly overLimit: Counter };
  /** Descriptors that a failure policy decided. */
  readonly storeFailure: Readonly<Record<StoreFailurePolicy, Counter>>;
  readonly #registry: StatsRegistry;
  /** Statistics by the metric path, which is an object of the rule. */
  #byPath = new WeakMap<readonly string[], RuleStats>();
  #releases: number;

  constructor(registry: StatsRegistry) {
    this.#registry = registry;
    this.#releases = registry.ruleReleases();
    this.serviceError = registry.counter(statsNames.serviceError);
    this.backendError = registry.counter(statsNames.backendError);
    this.globalShadowMode = registry.counter(statsNames.globalShadowMode);
    this.storeFailure = {
      allow: registry.counter(statsNames.storeFailure, { policy: 'allow' }),
      deny: registry.counter(statsNames.storeFailure, { policy: 'deny' }),
      local: registry.counter(statsNames.storeFailure, { policy: 'local' }),
    };
    this.decisions = {
      ok: registry.counter(statsNames.decisions, { result: 'ok' }),
      nearLimit: registry.counter(statsNames.decisions, { result: 'near_limit' }),
      overLimit: registry.counter(statsNames.decisions, { result: 'over_limit' }),
    };
  }

  /** Counts descriptors of a domain without rules. */
  domainNotFound(domain: string, descriptors: number): void {
    this.#registry.domainNotFound(domain).value += descriptors;
  }

  /**
   * The statistics of a limit. When they depend on the rule alone, they are found by its identity,
   * without building a name.
   */
  getRule(domain: string, { dynamicMetric, metricPath }: Limit): RuleStats {
    if (dynamicMetric) {
      return this.#registry.dynamicRule(domain, metricPath);
    }
    // A reload may keep the rule object, but always releases its series.
    if (this.#registry.ruleReleases() !== this.#releases) {
      this.#byPath = new WeakMap();
      this.#releases = this.#registry.ruleReleases();
    }
    let stats = this.#byPath.get(metricPath);
    if (stats === undefined) {
      stats = this.#registry.rule(domain, metricPath);
      this.#byPath.set(metricPath, stats);
    }
    return stats;
  }
}

/**
 * The count above which a limit is near, in 32-bit floating point as in envoyproxy/ratelimit, so
 * that both draw the line at the same hit. `ratio` is `NEAR_LIMIT_RATIO`, 0 to 1.
 */
export function nearThreshold(limit: number, ratio: number): number {
  return Math.floor(Math.fround(Math.fround(limit) * Math.fround(ratio)));
}

interface DecisionStatsContext {
  readonly stats: DecisionStats;
  readonly options: Pick<DecisionOptions, 'nearLimitRatio'>;
}

/** Counts a request by its result. It is near a limit when one of its counters is. */
export function recordDecision(
  { stats, options: { nearLimitRatio } }: DecisionStatsContext,
  overallCode: Code,
  limited: readonly LimitCheck[],
): void {
  const { ok, nearLimit, overLimit } = stats.decisions;
  if (overallCode === Code.OVER_LIMIT) overLimit.value += 1;
  else if (limited.some((check) => isNear(check, nearLimitRatio))) nearLimit.value += 1;
  else ok.value += 1;
}

function isNear({ limit, result }: LimitCheck, ratio: number): boolean {
  return result?.allowed === true && result.used > nearThreshold(limit.rule.capacity, ratio);
}

/** A check whose result belongs to the statistics of its rule. */
export interface RecordedCheck extends LimitCheck {
  readonly stats: RuleStats;
}

/**
 * Adds a result to the statistics of its rule, except `totalHits` and refunds, which are counted
 * before the store is called. A request that crosses a threshold is split: each hit is counted on
 * its side. `nearLimit` counts hits above the near threshold, including the one that reaches the
 * limit.
 */
export function recordResult(
  check: RecordedCheck,
  { nearLimitRatio }: DecisionStatsContext['options'],
): void {
  const { limit, hit, stats } = check;
  const { allowed, used, unrecorded } = requireResult(check);
  if (hit.addend < 0 || unrecorded === true) return;
  const near = nearThreshold(limit.rule.capacity, nearLimitRatio);
  if (allowed) recordWithin(stats, hit.addend, used, near);
  else recordOver(check, near);
}

function recordWithin(stats: RuleStats, addend: number, count: number, near: number): void {
  stats.withinLimit += addend;
  if (count <= near) return;
  stats.nearLimit += countBefore(count, addend) >= near ? addend : count - near;
}

function recordOver(check: RecordedCheck, near: number): void {
  const { limit, stats } = check;
  const { addend } = check.hit;
  const { used: count, fromLocalCache = false } = requireResult(check);
  if (fromLocalCache) stats.overLimitWithLocalCache += addend;
  const before = countBefore(count, addend);
  const allOver = fromLocalCache || before >= limit.rule.capacity;
  const hitsOver = allOver ? addend : count - limit.rule.capacity;
  stats.overLimit += hitsOver;
  // In 32 bits a large limit may be rounded to a threshold above it.
  if (!allOver) stats.nearLimit += Math.max(0, limit.rule.capacity - Math.max(near, before));
  if (limit.rule.shadowMode) stats.shadowMode += hitsOver;
}

/**
 * A count below the hits means that the hits were not stored
 * (`STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT`): the unsigned subtraction of envoyproxy/ratelimit
 * then wraps to a huge number.
 */
function countBefore(count: number, addend: number): number {
  return count < addend ? Number.POSITIVE_INFINITY : count - addend;
}
