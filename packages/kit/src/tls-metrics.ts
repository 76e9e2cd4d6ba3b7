import { Counter, Gauge, type Registry } from 'prom-client';
import type { TlsValidity } from './tls-files.ts';

/** Names of the TLS metrics; the same in every service, so that one alert covers all of them. */
export const tlsMetricNames = {
  certificateNotBefore: 'tollgate_tls_certificate_not_before_timestamp_seconds',
  certificateExpiry: 'tollgate_tls_certificate_expiry_timestamp_seconds',
  handshakeFailures: 'tollgate_tls_handshake_failures_total',
} as const;

/** Metrics of certificates and TLS listeners. Label values come from a fixed set per service. */
export interface TlsMetrics {
  /** Sets the validity of the certificate named `certificate`, such as `ads_server` or `redis_client`. */
  setValidity(certificate: string, validity: TlsValidity): void;
  /** Adds a listener with 0 failures; the returned function counts one. */
  handshakeFailures(listener: string): () => void;
}

/** Registers the TLS metrics. */
export function createTlsMetrics(registry: Registry): TlsMetrics {
  const registers = [registry];
  const notBefore = new Gauge({
    name: tlsMetricNames.certificateNotBefore,
    help: 'Unix time from which the certificate in use is valid.',
    labelNames: ['certificate'],
    registers,
  });
  const expiry = new Gauge({
    name: tlsMetricNames.certificateExpiry,
    help: 'Unix time at which the certificate in use expires.',
    labelNames: ['certificate'],
    registers,
  });
  const failures = new Counter({
    name: tlsMetricNames.handshakeFailures,
    help: 'TLS handshakes with clients that failed or were refused.',
    labelNames: ['listener'],
    registers,
  });
  return {
    setValidity(certificate, { notBeforeMs, notAfterMs }) {
      notBefore.set({ certificate }, notBeforeMs / 1000);
      expiry.set({ certificate }, notAfterMs / 1000);
    },
    handshakeFailures(listener) {
      failures.inc({ listener }, 0);
      return () => failures.inc({ listener });
    },
  };
}
