import type { Rule } from '@tollgate/rules/rule-set';
import type { LimitInForce } from '../domain/limit-in-force.ts';
import { statsNames } from '../stats/stats-names.ts';
import type { Counter, RuleCounters, StatsRegistry } from '../stats/stats-registry.ts';

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
