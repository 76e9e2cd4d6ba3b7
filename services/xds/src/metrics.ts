import { TlsMetrics } from '@tollgate/kit/metrics';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { acceptedReasons } from './catalog/validation-result.ts';

/** All metrics of the service. Label values come from fixed sets: no domains, no node ids. */
export type XdsMetrics = ReturnType<typeof registerMetrics>;

/** Series of parts that do not run are omitted, so that their alerts stay silent. */
export interface XdsMetricsOptions {
  /** A cluster sends a bookmark every minute, a folder only changes. Default `kubernetes`. */
  readonly source?: 'kubernetes' | 'folder';
  /** Whether a leader is elected to write statuses. Default true. */
  readonly electsLeader?: boolean;
  /** Whether the admission webhook is served. Default true. */
  readonly admits?: boolean;
  /** Whether the webhook has a certificate of our authority, which we register. Default true. */
  readonly registersWebhook?: boolean;
}

/** `allowed` and `denied` are reviews; without one, the failure policy of the webhook decides. */
const admissionResults = ['allowed', 'denied', 'malformed', 'overloaded', 'late', 'failed'] as const;

export type AdmissionResult = (typeof admissionResults)[number];

/** Reasons of problems of access policies, as opposed to warnings. */
export const policyProblemReasons = ['Invalid', 'TargetNotFound', 'Conflicted', 'HostNotAllowed'] as const;

export type PolicyProblemReason = (typeof policyProblemReasons)[number];

/** Why a gateway does not ask auth servers about requests that an access policy is for. */
export const unenforcedReasons = ['Bypassed', 'NotAttached'] as const;

/** Why clients do not have an access policy that is in force. */
export const unprogrammedReasons = ['Pending', 'Nacked', 'NoClients'] as const;

/** Registers the metrics. Every series that an alert reads exists from then on. */
export function registerMetrics(registry: Registry, options: XdsMetricsOptions = {}) {
  const { source = 'kubernetes', electsLeader = true, admits = true, registersWebhook = true } = options;
  const metrics = {
    tls: new TlsMetrics(registry),
    ...adsMetrics([registry]),
    ...reloadMetrics([registry]),
    ...catalogMetrics([registry]),
    ...sourceMetrics([registry], source),
    ...statusMetrics([registry], electsLeader),
    ...admissionMetrics(admits ? [registry] : [], admits && registersWebhook ? [registry] : []),
  };
  for (const protocol of ['sotw', 'delta'])
    for (const responses of [metrics.pushes, metrics.acks, metrics.nacks]) responses.inc({ protocol }, 0);
  for (const type of ['replaced', 'changed', 'deleted']) metrics.sourceEvents.inc({ type }, 0);
  for (const result of admissionResults) metrics.admissionRequests.inc({ result }, 0);
  for (const reason of acceptedReasons) metrics.objects.set({ reason }, 0);
  for (const reason of policyProblemReasons) metrics.policyProblems.set({ reason }, 0);
  for (const reason of unenforcedReasons) metrics.unenforcedPolicies.set({ reason }, 0);
  for (const reason of unprogrammedReasons) metrics.unprogrammedPolicies.set({ reason }, 0);
  for (const files of ['tls', 'tokens']) metrics.filesCurrent.set({ files }, 1);
  for (const result of ['succeeded', 'failed']) {
    metrics.tlsReloads.inc({ result }, 0);
    metrics.tokenReloads.inc({ result }, 0);
  }
  return metrics;
}

function adsMetrics(registers: Registry[]) {
  const labelNames = ['protocol'];
  return {
    streams: new Gauge({
      name: 'tollgate_xds_streams',
      help: 'Open ADS streams.',
      labelNames,
      registers,
    }),
    pushes: new Counter({
      name: 'tollgate_xds_pushes_total',
      help: 'Discovery responses sent.',
      labelNames,
      registers,
    }),
    acks: new Counter({
      name: 'tollgate_xds_acks_total',
      help: 'Discovery responses acknowledged by clients (ACK).',
      labelNames,
      registers,
    }),
    nacks: new Counter({
      name: 'tollgate_xds_nacks_total',
      help: 'Discovery responses rejected by clients (NACK).',
      labelNames,
      registers,
    }),
    refusedStreams: new Counter({
      name: 'tollgate_xds_refused_streams_total',
      help: 'Streams refused or ended by the server: unauthenticated, or a protocol violation.',
      labelNames: ['reason'],
      registers,
    }),
    propagationSeconds: new Histogram({
      name: 'tollgate_xds_propagation_seconds',
      help: 'Time from a new snapshot until a client acknowledged it.',
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
      registers,
    }),
  };
}

function reloadMetrics(registers: Registry[]) {
  return {
    filesCurrent: new Gauge({
      name: 'tollgate_xds_files_current',
      help: '1 while the certificate files (files="tls") and the bearer token file (files="tokens") in use are those on disk; 0 after a failed reload.',
      labelNames: ['files'],
      registers,
    }),
    tlsReloads: new Counter({
      name: 'tollgate_xds_tls_reloads_total',
      help: 'Reads of the certificate files of the ADS server, including the one at startup; after a failure the last valid ones stay in use.',
      labelNames: ['result'],
      registers,
    }),
    tokenReloads: new Counter({
      name: 'tollgate_xds_token_reloads_total',
      help: 'Reads of the bearer token file, including the one at startup; after a failure the last valid tokens stay in use.',
      labelNames: ['result'],
      registers,
    }),
  };
}

function catalogMetrics(registers: Registry[]) {
  return {
    objects: new Gauge({
      name: 'tollgate_xds_objects',
      help: 'RateLimitConfig objects by the reason of their condition Accepted.',
      labelNames: ['reason'],
      registers,
    }),
    domains: new Gauge({ name: 'tollgate_xds_domains', help: 'Domains served.', registers }),
    rules: new Gauge({ name: 'tollgate_xds_rules', help: 'Limits served.', registers }),
    heldDomains: new Gauge({
      name: 'tollgate_xds_held_domains',
      help: 'Domains whose objects were deleted and whose rules stay in force, because too many vanished at once.',
      registers,
    }),
    policyProblems: new Gauge({
      name: 'tollgate_xds_policy_problems',
      help: 'Access policies with a problem, by reason; a policy with several counts for each.',
      labelNames: ['reason'],
      registers,
    }),
    unenforcedPolicies: new Gauge({
      name: 'tollgate_xds_unenforced_policies',
      help: 'Access policies that a Gateway of Envoy Gateway does not enforce: reason="Bypassed" because a more specific SecurityPolicy replaces the external authorization, "NotAttached" because the Gateway has none.',
      labelNames: ['reason'],
      registers,
    }),
    unprogrammedPolicies: new Gauge({
      name: 'tollgate_xds_unprogrammed_policies',
      help: 'Access policies that not all clients of any xDS server have: reason="Pending" because one has not acknowledged the version in force yet, "Nacked" because one refuses it, "NoClients" because no auth server or no limiter is connected.',
      labelNames: ['reason'],
      registers,
    }),
    heldPolicies: new Gauge({
      name: 'tollgate_xds_held_policies',
      help: 'Access policies that were deleted and stay in force, because too many vanished at once.',
      registers,
    }),
    emptyHeldBack: new Gauge({
      name: 'tollgate_xds_empty_set_held_back',
      help: '1 while no limit is left and XDS_ALLOW_EMPTY=false prevents serving an empty set.',
      registers,
    }),
  };
}

function sourceMetrics(registers: Registry[], source: 'kubernetes' | 'folder') {
  return {
    synced: new Gauge({
      name: 'tollgate_xds_source_synced',
      help: '1 once the source has delivered all its objects.',
      registers,
    }),
    lastEventTimestampSeconds: new Gauge({
      name: 'tollgate_xds_source_last_event_timestamp_seconds',
      help: 'Unix time of the last event of the source; its age is time() minus this. A cluster sends a bookmark every minute; a folder has no such series, because it is silent until a file changes.',
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
      help: 'Complete lists read from the source; with a folder, each read is one.',
      registers,
    }),
    sourceErrors: new Counter({
      name: 'tollgate_xds_source_errors_total',
      help: 'Failed lists and watches; with a folder, failed reads of it (operation="list") and of single files (operation="read").',
      labelNames: ['operation'],
      registers,
    }),
  };
}

function statusMetrics(registers: Registry[], electsLeader: boolean) {
  return {
    statusWrites: new Counter({
      name: 'tollgate_xds_status_writes_total',
      help: 'Status writes.',
      labelNames: ['result'],
      registers,
    }),
    leader: new Gauge({
      name: 'tollgate_xds_leader',
      help: '1 while this replica writes the status of objects. Missing when no status is written.',
      registers: electsLeader ? registers : [],
    }),
  };
}

function admissionMetrics(registers: Registry[], registration: Registry[]) {
  return {
    admissionRequests: new Counter({
      name: 'tollgate_xds_admission_requests_total',
      help: 'Requests to the admission webhook. Other results than allowed and denied are no reviews: the failure policy of the webhook decides.',
      labelNames: ['result'],
      registers,
    }),
    admissionSeconds: new Histogram({
      name: 'tollgate_xds_admission_seconds',
      help: 'Duration of requests to the admission webhook.',
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2],
      registers,
    }),
    admissionRegistered: new Gauge({
      name: 'tollgate_xds_admission_registered',
      help: '1 while the ValidatingWebhookConfiguration has the authorities of our certificate, so that the API server can call the webhook.',
      registers: registration,
    }),
  };
}

/** Registers the numbers of limiters that are connected to this replica. */
export function registerLimiters(
  count: () => { readonly connected: number; readonly current: number; readonly rejecting: number },
  registry: Registry,
): void {
  const registers = [registry];
  new Gauge({
    name: 'tollgate_xds_rejecting_limiters',
    help: 'Connected limiters that rejected the latest configuration and enforce the previous one.',
    registers,
    collect() {
      this.set(count().rejecting);
    },
  });
  new Gauge({
    name: 'tollgate_xds_limiters',
    help: 'Limiters connected to this replica: state="current" enforce the latest configuration, state="behind" do not.',
    labelNames: ['state'],
    registers,
    collect() {
      const { connected, current } = count();
      this.set({ state: 'current' }, current);
      this.set({ state: 'behind' }, connected - current);
    },
  });
}

/** Returns the callback for each attempt to read watched files. */
export function countReloads(metrics: XdsMetrics, files: 'tls' | 'tokens'): (succeeded: boolean) => void {
  const reloads = files === 'tls' ? metrics.tlsReloads : metrics.tokenReloads;
  return (succeeded) => {
    reloads.inc({ result: succeeded ? 'succeeded' : 'failed' });
    metrics.filesCurrent.set({ files }, succeeded ? 1 : 0);
  };
}
