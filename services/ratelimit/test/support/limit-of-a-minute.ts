import type { Rule } from '@tollgate/rules/rule-set';
import type { Limit } from '../../src/decision/find-limit.ts';

/** A rule of so many requests a minute, and nothing else to it. */
export function ruleOfAMinute(requestsPerUnit: number): Rule {
  return {
    path: '',
    domain: '',
    unit: 'minute',
    unitSeconds: 60,
    requestsPerUnit,
    capacity: requestsPerUnit,
    unlimited: false,
    name: '',
    replaces: [],
    shadowMode: false,
    quotaMode: false,
    detailedMetric: false,
    metricPath: [],
    matched: false,
  };
}

/** The limit of such a rule. */
export function limitOfAMinute(requestsPerUnit: number): Limit {
  return {
    kind: 'limited',
    rule: ruleOfAMinute(requestsPerUnit),
    isOwn: true,
    windows: undefined,
    keyEntries: [],
    metricPath: [],
    dynamicMetric: true,
  };
}
