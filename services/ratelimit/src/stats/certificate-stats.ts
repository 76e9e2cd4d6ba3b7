import { type TlsMetrics, tlsMetricNames } from '@tollgate/kit/tls';
import { statsNames } from './stats-names.ts';
import type { StatsRegistry } from './stats-registry.ts';

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
export function createTlsStats(stats: StatsRegistry): TlsMetrics {
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
