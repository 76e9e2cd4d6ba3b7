import { TlsMetrics } from '@tollgate/kit/tls';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { LimiterClient } from './ads/limiters.ts';
import { acceptedReasons } from './catalog/accepted.ts';

/** All that the service counts. Label values come from fixed sets; no domain, no name of a node. */
export type XdsMetrics = ReturnType<typeof createXdsMetrics>;

/** Of the protocol spoken on a stream. */
export type ProtocolLabel = 'sotw' | 'delta';

/**
 * What of the service runs: series of what does not are left out, so that alerts on them stay
 * silent.
 */
export interface XdsMetricsOptions {
  /**
   * A cluster sends something every minute, a folder only when a file changes. Default
   * `kubernetes`.
   */
  readonly source?: 'kubernetes' | 'folder';
  /** Whether a replica is elected to write the status of objects. Default true. */
  readonly electsLeader?: boolean;
}

/** Registers the metrics of the service. Every series that an alert reads exists from then on. */
export function createXdsMetrics(registry: Registry, options: XdsMetricsOptions = {}) {
  const { source = 'kubernetes', electsLeader = true } = options;
  const metrics = registerMetrics(registry, { source, electsLeader });
  for (const protocol of ['sotw', 'delta']) metrics.nacks.inc({ protocol }, 0);
  for (const reason of acceptedReasons) metrics.objects.set({ reason }, 0);
  for (const files of ['tls', 'tokens']) metrics.filesCurrent.set({ files }, 1);
  for (const result of ['succeeded', 'failed']) {
    metrics.tlsReloads.inc({ result }, 0);
    metrics.tokenReloads.inc({ result }, 0);
  }
  return metrics;
}

function registerMetrics(registry: Registry, { source, electsLeader }: Required<XdsMetricsOptions>) {
  const registers = [registry];
  return {
    tls: new TlsMetrics(registry),
    streams: new Gauge({
      name: 'tollgate_xds_streams',
      help: 'Open ADS streams.',
      labelNames: ['protocol'],
      registers,
    }),
    pushes: new Counter({
      name: 'tollgate_xds_pushes_total',
      help: 'Discovery responses sent.',
      labelNames: ['protocol'],
      registers,
    }),
    acks: new Counter({
      name: 'tollgate_xds_acks_total',
      help: 'Discovery responses that a client accepted.',
      labelNames: ['protocol'],
      registers,
    }),
    nacks: new Counter({
      name: 'tollgate_xds_nacks_total',
      help: 'Discovery responses that a client rejected.',
      labelNames: ['protocol'],
      registers,
    }),
    refusedStreams: new Counter({
      name: 'tollgate_xds_refused_streams_total',
      help: 'Streams ended by the server: unauthenticated, or against the protocol.',
      labelNames: ['reason'],
      registers,
    }),
    filesCurrent: new Gauge({
      name: 'tollgate_xds_files_current',
      help: '1 while the certificate files (files="tls") and the file of bearer tokens (files="tokens") in use are those on disk; 0 after a reload that failed.',
      labelNames: ['files'],
      registers,
    }),
    tlsReloads: new Counter({
      name: 'tollgate_xds_tls_reloads_total',
      help: 'Times the certificate files of the ADS server were read, that of the start included; after one that failed the last good ones stay.',
      labelNames: ['result'],
      registers,
    }),
    tokenReloads: new Counter({
      name: 'tollgate_xds_token_reloads_total',
      help: 'Times the file of bearer tokens was read, that of the start included; after one that failed the last good ones stay.',
      labelNames: ['result'],
      registers,
    }),
    propagationSeconds: new Histogram({
      name: 'tollgate_xds_propagation_seconds',
      help: 'From the moment a snapshot came into force until a client acknowledged it.',
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
      registers,
    }),
    objects: new Gauge({
      name: 'tollgate_xds_objects',
      help: 'RateLimitConfig objects, by the reason of their condition Accepted.',
      labelNames: ['reason'],
      registers,
    }),
    domains: new Gauge({ name: 'tollgate_xds_domains', help: 'Domains served.', registers }),
    rules: new Gauge({ name: 'tollgate_xds_rules', help: 'Limits served.', registers }),
    emptyHeldBack: new Gauge({
      name: 'tollgate_xds_empty_set_held_back',
      help: '1 while there is no limit left and XDS_ALLOW_EMPTY=false keeps limiters from being told.',
      registers,
    }),
    synced: new Gauge({
      name: 'tollgate_xds_source_synced',
      help: '1 once the source has told of all its objects.',
      registers,
    }),
    lastEventTimestampSeconds: new Gauge({
      name: 'tollgate_xds_source_last_event_timestamp_seconds',
      help: 'Unix time of the last word of the source; its age is time() minus this. A cluster says something every minute (bookmarks); a folder has no such series, because it is silent until a file changes.',
      registers: source === 'kubernetes' ? registers : [],
    }),
    sourceEvents: new Counter({
      name: 'tollgate_xds_source_events_total',
      help: 'Events of the source.',
      labelNames: ['type'],
      registers,
    }),
    relists: new Counter({
      name: 'tollgate_xds_source_relists_total',
      help: 'Complete lists taken from the source; of a folder, each reading is one.',
      registers,
    }),
    sourceErrors: new Counter({
      name: 'tollgate_xds_source_errors_total',
      help: 'Lists and watches that failed; of a folder, readings of it (operation="list") and of single files (operation="read").',
      labelNames: ['operation'],
      registers,
    }),
    statusWrites: new Counter({
      name: 'tollgate_xds_status_writes_total',
      help: 'Writes of a status.',
      labelNames: ['result'],
      registers,
    }),
    leader: new Gauge({
      name: 'tollgate_xds_leader',
      help: '1 while this replica writes the status of objects. Missing where no replica does.',
      registers: electsLeader ? registers : [],
    }),
  };
}

/**
 * Returns the callback for attempts to read files that are followed: counts them, and shows whether
 * the last one succeeded.
 */
export function countReloads(metrics: XdsMetrics, files: 'tls' | 'tokens'): (succeeded: boolean) => void {
  const reloads = files === 'tls' ? metrics.tlsReloads : metrics.tokenReloads;
  return (succeeded) => {
    reloads.inc({ result: succeeded ? 'succeeded' : 'failed' });
    metrics.filesCurrent.set({ files }, succeeded ? 1 : 0);
  };
}

/**
 * Shows how many of the connected limiters enforce older rules, because they rejected the
 * latest.
 */
export function measureLimiters(
  clients: { all(): Iterable<Pick<LimiterClient, 'rejection'>> },
  registry: Registry,
): void {
  new Gauge({
    name: 'tollgate_xds_rejecting_limiters',
    help: 'Connected limiters that rejected the configuration sent last, and enforce the one before it.',
    registers: [registry],
    collect() {
      let rejecting = 0;
      for (const { rejection } of clients.all()) if (rejection !== undefined) rejecting += 1;
      this.set(rejecting);
    },
  });
}
