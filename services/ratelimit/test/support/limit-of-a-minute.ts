import type { LimitInForce } from '../../src/ratelimit/limit.ts';

/** A limit of so many requests a minute, and nothing else to it. */
export function limitOfAMinute(requestsPerUnit: number): LimitInForce {
  return {
    kind: 'limited',
    unit: 'minute',
    unitSeconds: 60,
    requestsPerUnit,
    name: '',
    shadowMode: false,
    quotaMode: false,
    keyEntries: [],
    metricPath: [],
  };
}
