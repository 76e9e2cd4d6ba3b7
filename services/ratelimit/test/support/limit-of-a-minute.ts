import { fixedWindow } from '../../src/algorithms/fixed-window.ts';
import type { Limit } from '../../src/decision/find-limit.ts';

/** A limit of so many requests a minute, and nothing else to it. */
export function limitOfAMinute(requestsPerUnit: number): Limit {
  return {
    kind: 'limited',
    unit: 'minute',
    unitSeconds: 60,
    requestsPerUnit,
    capacity: requestsPerUnit,
    algorithm: fixedWindow,
    name: '',
    shadowMode: false,
    quotaMode: false,
    keyEntries: [],
    metricPath: [],
    rule: undefined,
    dynamicMetric: true,
  };
}
