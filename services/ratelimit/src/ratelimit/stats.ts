import type { Rule } from '@tollgate/rules/rule-set';
import { statsNames } from '../stats/names.ts';
import type { Counter, RuleCounters, StatsRegistry } from '../stats/registry.ts';
import type { LimitInForce } from './limit.ts';

/** The counters of a rule that a decision adds to. */
export interface RuleTally {
  overLimit: number;
  nearLimit: number;
  overLimitWithLocalCache: number;
  withinLimit: number;
  shadowMode: number;
}

/** One decision as the statistics see it. */
export interface CountedDecision {
  /** Requests per unit of the rule. */
  readonly limit: number;
  /** Hits this request asked for. */
  readonly addend: number;
  /** The stored count after the request; meaningless when `fromLocalCache`. */
  readonly after: number;
  /** Result of `nearThreshold`. */
  readonly nearThreshold: number;
  /** Whether the rule was exceeded, before shadow mode turned it into OK. */
  readonly over: boolean;
  /** Whether the rule is in shadow mode. */
  readonly shadow: boolean;
  /** Whether the local cache of over-limit keys answered. */
  readonly fromLocalCache: boolean;
}

/**
 * Computes above which count a limit is near: in 32-bit floating point as the original does, so that both draw the line
 * at the same hit. `ratio` is `NEAR_LIMIT_RATIO`, 0 to 1.
 */
export function nearThreshold(limit: number, ratio: number): number {
  return Math.floor(Math.fround(Math.fround(limit) * Math.fround(ratio)));
}

/**
 * Adds one decision to the counters of its rule, except `totalHits`, which counts before the backend is asked. A request
 * that crosses a line is split: each hit is counted on its side. `nearLimit` holds hits above the near threshold up to
 * and with the one that reaches the limit.
 */
export function countStats(counters: RuleTally, decision: CountedDecision): void {
  if (decision.over) countOver(counters, decision);
  else countWithin(counters, decision);
}

function countWithin(counters: RuleTally, { addend, after, nearThreshold: near }: CountedDecision): void {
  counters.withinLimit += addend;
  if (after <= near) return;
  counters.nearLimit += countBefore(after, addend) >= near ? addend : after - near;
}

function countOver(counters: RuleTally, decision: CountedDecision): void {
  const { limit, addend, after, nearThreshold: near, shadow, fromLocalCache } = decision;
  if (fromLocalCache) counters.overLimitWithLocalCache += addend;
  const before = countBefore(after, addend);
  const allOver = fromLocalCache || before >= limit;
  const hitsOver = allOver ? addend : after - limit;
  counters.overLimit += hitsOver;
  // In 32 bits a large limit may be rounded to a threshold above it.
  if (!allOver) counters.nearLimit += Math.max(0, limit - Math.max(near, before));
  if (shadow) counters.shadowMode += hitsOver;
}

/**
 * A count lower than the hits asked for means that the hits were not stored
 * (`STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT`): the original's unsigned subtraction then wraps to a huge number.
 */
function countBefore(after: number, addend: number): number {
  return after < addend ? Number.POSITIVE_INFINITY : after - addend;
}

/** The counters a decision touches. */
export interface DecisionStats {
  readonly serviceError: Counter;
  readonly backendError: Counter;
  readonly globalShadowMode: Counter;
  /** Counts decisions by result. */
  readonly decisions: { readonly ok: Counter; readonly nearLimit: Counter; readonly overLimit: Counter };
  /** Counts descriptors that asked for a domain nobody configured. */
  domainNotFound(domain: string, descriptors: number): void;
  /** The counters of the rule behind a limit. */
  countersOf(domain: string, limit: LimitInForce): RuleCounters;
}

/** Picks from the registry what decisions count; static rules find their counters by identity, without building a name. */
export function createDecisionStats(registry: StatsRegistry): DecisionStats {
  let ofRule = new WeakMap<Rule, RuleCounters>();
  let releases = registry.ruleReleases();
  return {
    serviceError: registry.counter(statsNames.serviceError),
    backendError: registry.counter(statsNames.backendError),
    globalShadowMode: registry.counter(statsNames.globalShadowMode),
    decisions: {
      ok: registry.counter(statsNames.decisions, { result: 'ok' }),
      nearLimit: registry.counter(statsNames.decisions, { result: 'near_limit' }),
      overLimit: registry.counter(statsNames.decisions, { result: 'over_limit' }),
    },
    domainNotFound(domain, descriptors) {
      registry.domainNotFound(domain).value += descriptors;
    },
    countersOf(domain, limit) {
      const { staticRule } = limit;
      if (staticRule === undefined) {
        return registry.dynamicRule(domain, limit.metricPath);
      }
      // A rule may be the same object after a reload; its series was let go of all the same.
      if (registry.ruleReleases() !== releases) {
        ofRule = new WeakMap();
        releases = registry.ruleReleases();
      }
      let counters = ofRule.get(staticRule);
      if (counters === undefined) {
        counters = registry.rule(domain, limit.metricPath);
        ofRule.set(staticRule, counters);
      }
      return counters;
    },
  };
}
