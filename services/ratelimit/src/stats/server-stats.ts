import { type TlsMetrics, tlsMetricNames } from '@tollgate/kit/tls';
import { responseTimeName, statsNames, totalRequestsName } from './names.ts';
import type { StatsRegistry } from './registry.ts';

/** Keeps `certs.load_attempts`, `.load_failures` and `.num_values` (1 once there are certificates). */
export function countCertificateLoads(stats: StatsRegistry): (succeeded: boolean) => void {
  const attempts = stats.counter(statsNames.certsLoadAttempts);
  const failures = stats.counter(statsNames.certsLoadFailures);
  const values = stats.gauge(statsNames.certsNumValues);
  return (succeeded) => {
    attempts.value += 1;
    if (succeeded) {
      values.value = 1;
    } else {
      failures.value += 1;
    }
  };
}

/** The TLS metrics of the kit, kept in the registry of statistics. */
export function createTlsStats(stats: StatsRegistry): Pick<TlsMetrics, keyof TlsMetrics> {
  return {
    setValidity(certificate, { notBeforeMs, notAfterMs }) {
      const { certificateNotBefore, certificateExpiry } = tlsMetricNames;
      stats.gauge(certificateNotBefore, undefined, { certificate }).value = notBeforeMs / 1000;
      stats.gauge(certificateExpiry, undefined, { certificate }).value = notAfterMs / 1000;
    },
    handshakeFailures(listener) {
      const failures = stats.counter(tlsMetricNames.handshakeFailures, { listener });
      return () => {
        failures.value += 1;
      };
    },
  };
}

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
