import { memcachedStatNames as names } from '../../stats/stats-names.ts';
import type { Counter, StatsRegistry } from '../../stats/stats-registry.ts';

/** What is counted of the exchanges with memcached. */
export interface MemcachedStats {
  readonly multiGet: { readonly success: Counter; readonly error: Counter };
  readonly increment: { readonly success: Counter; readonly miss: Counter; readonly error: Counter };
  readonly add: { readonly success: Counter; readonly notStored: Counter; readonly error: Counter };
  readonly keysRequested: Counter;
  readonly keysFound: Counter;
  /** Hits that were let through without being counted. */
  readonly uncountedHits: Counter;
}

/** Makes the statistics, so that all of them are there from the start. */
export function createMemcachedStats(stats: StatsRegistry): MemcachedStats {
  const outcome = (name: string, code: string): Counter => stats.counter(name, { code });
  return {
    multiGet: { success: outcome(names.multiGet, 'success'), error: outcome(names.multiGet, 'error') },
    increment: {
      success: outcome(names.increment, 'success'),
      miss: outcome(names.increment, 'miss'),
      error: outcome(names.increment, 'error'),
    },
    add: {
      success: outcome(names.add, 'success'),
      notStored: outcome(names.add, 'not_stored'),
      error: outcome(names.add, 'error'),
    },
    keysRequested: stats.counter(names.keysRequested),
    keysFound: stats.counter(names.keysFound),
    uncountedHits: stats.counter(names.uncountedHits),
  };
}
