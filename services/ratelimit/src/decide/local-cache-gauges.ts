import { localCacheStatNames, statsNames } from '../stats/stats-names.ts';
import type { StatsRegistry } from '../stats/stats-registry.ts';
import type { LocalCache } from './local-cache.ts';

/** Shows the cache's figures as gauges, `ratelimit.localcache.*`. */
export function registerLocalCacheGauges(cache: LocalCache, stats: StatsRegistry): void {
  for (const name of localCacheStatNames) {
    stats.gauge(`${statsNames.localCachePrefix}${name}`, () => cache.figures[name]);
  }
}
