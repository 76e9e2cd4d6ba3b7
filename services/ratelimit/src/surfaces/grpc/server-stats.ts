import { responseTimeName, totalRequestsName } from '../../stats/stats-names.ts';
import type { StatsRegistry } from '../../stats/stats-registry.ts';

/** Counts calls by method and times them. */
export interface ServerStats {
  /** Counts a call; the function it answers is to be called when the call has ended. */
  begin(method: string): () => void;
}

/** Keeps `ratelimit_server.<method>.total_requests` and `.response_time`. */
export function createServerStats(registry: StatsRegistry, nowMs: () => number): ServerStats {
  const methods = new Map<string, ReturnType<typeof makeMethod>>();
  const makeMethod = (method: string) => ({
    total: registry.counter(totalRequestsName(method)),
    responseTime: registry.timer(responseTimeName(method)),
  });
  // In the metrics from the start; the other methods are not asked in production.
  methods.set('ShouldRateLimit', makeMethod('ShouldRateLimit'));
  return {
    begin(method) {
      let stats = methods.get(method);
      if (stats === undefined) {
        stats = makeMethod(method);
        methods.set(method, stats);
      }
      const { total, responseTime } = stats;
      total.value += 1;
      const startedMs = nowMs();
      return () => responseTime.record(nowMs() - startedMs);
    },
  };
}
