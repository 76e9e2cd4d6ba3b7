import type { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { createClientBuffers } from '@tollgate/kit/client-buffers';
import type { Logger } from '@tollgate/kit/logger';
import type { TlsMetrics } from '@tollgate/kit/metrics';
import { tlsMetricNames } from '@tollgate/kit/tls';
import { responseTimeName, statsNames, totalRequestsName } from './names.ts';
import type { StatsRegistry } from './registry.ts';

/**
 * Counts loads of certificates: `certs.load_attempts`, `.load_failures` and `.num_values` (1 once
 * there are any).
 */
export function createLoadCounter(stats: StatsRegistry): (succeeded: boolean) => void {
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

/** The budget of this process for what clients make it hold, and its statistics. */
export function createMeasuredBuffers(
  maxBytes: number,
  { logger, stats }: { readonly logger: Logger; readonly stats: StatsRegistry },
): ClientBuffers {
  const refused = {
    grpc: stats.counter(statsNames.clientBufferRefused, { protocol: 'grpc' }),
    http: stats.counter(statsNames.clientBufferRefused, { protocol: 'http' }),
  };
  const buffers = createClientBuffers({
    maxBytes,
    logger,
    onShed: (protocol) => {
      refused[protocol].value += 1;
    },
  });
  stats.gauge(statsNames.clientBufferBytes, () => buffers.bytes);
  return buffers;
}

/** The TLS metrics of the kit, kept in the registry. */
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

/**
 * Counts and times calls by method: `ratelimit_server.<method>.total_requests` and
 * `.response_time`. The function is called at the start of a call, its result at the end.
 */
export function createCallTimer(stats: StatsRegistry): (method: string) => () => void {
  const createMethod = (method: string) => ({
    total: stats.counter(totalRequestsName(method)),
    responseTime: stats.timer(responseTimeName(method)),
  });
  // This series exists from the start; the other methods are not called in production.
  const methods = new Map([['ShouldRateLimit', createMethod('ShouldRateLimit')]]);
  return (method) => {
    let stat = methods.get(method);
    if (stat === undefined) {
      stat = createMethod(method);
      methods.set(method, stat);
    }
    const { total, responseTime } = stat;
    total.value += 1;
    const startedMs = performance.now();
    return () => responseTime.record(performance.now() - startedMs);
  };
}
