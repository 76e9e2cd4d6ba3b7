import type { Metrics, Sample } from './scrape.ts';

export type ReplicaKind = 'auth server' | 'limiter' | 'xDS server';

/** Rates that the overview shows, in requests per second. */
export const rateNames = ['allowed', 'refused', 'denied', 'errors'] as const;

export type RateName = (typeof rateNames)[number];

/** Durations that the overview shows, in milliseconds. */
export const quantileNames = ['p50', 'p99'] as const;

/** Totals since the start of a process. */
export interface Totals {
  readonly startedAt: number;
  readonly counts: Readonly<Record<RateName, number>>;
  /** Cumulative counts of durations by their upper bound in seconds. */
  readonly buckets: ReadonlyMap<number, number>;
}

/** A problem that a replica may report. */
export interface Signal {
  readonly text: string;
  /** Its section in docs/alerts.md. */
  readonly alert: string;
  /** A counter is a problem when it grows, a gauge when it is not 0. */
  readonly isCounter: boolean;
  readonly value: number;
}

interface Family {
  readonly kind: ReplicaKind;
  /** Every process of the kind has it. */
  readonly sign: string;
  readonly counts: Partial<Record<RateName, (metrics: Metrics) => number>>;
  readonly durations?: string;
  readonly signals: readonly (Omit<Signal, 'value'> & {
    readonly metric: string;
    /** Selects samples. Default: all. */
    readonly when?: (sample: Sample) => boolean;
  })[];
}

const decisions = 'ratelimit_decisions';
const checks = 'auth_ext_authz_checks_total';
const limiterErrors = 'ratelimit_service_should_rate_limit_error';

/** Metrics and signals of each kind of service. A new signal is an entry. */
const families: readonly Family[] = [
  {
    kind: 'limiter',
    sign: decisions,
    counts: {
      allowed: (metrics) => sum(metrics, decisions, ({ result }) => result !== 'over_limit'),
      refused: (metrics) => sum(metrics, decisions, ({ result }) => result === 'over_limit'),
      errors: (metrics) => sum(metrics, limiterErrors),
    },
    durations: 'ratelimit_service_response_time_seconds',
    signals: [
      {
        metric: limiterErrors,
        when: ({ labels }) => labels.err_type === 'redis_error',
        text: 'Decisions fail because the counter store does not answer',
        alert: 'TollgateRatelimitBackendErrors',
        isCounter: true,
      },
      {
        metric: 'ratelimit_store_failure',
        text: 'Limits are decided by the failure policy, because the counter store fails',
        alert: 'TollgateRatelimitStoreFailurePolicy',
        isCounter: true,
      },
      {
        metric: 'ratelimit_service_config_current',
        when: ({ value }) => value === 0,
        text: 'The newest configuration was rejected: the one before is in force',
        alert: 'TollgateRatelimitRulesRefused',
        isCounter: false,
      },
    ],
  },
  {
    kind: 'auth server',
    sign: checks,
    counts: {
      allowed: (metrics) => sum(metrics, checks, ({ outcome }) => outcome === 'allowed'),
      denied: (metrics) => sum(metrics, checks, ({ outcome }) => outcome === 'denied'),
      errors: (metrics) => sum(metrics, checks, ({ outcome }) => outcome === 'unavailable'),
    },
    durations: 'auth_ext_authz_check_duration_seconds',
    signals: [
      {
        metric: checks,
        when: ({ labels }) => labels.outcome === 'unavailable',
        text: 'Requests are denied because the check fails',
        alert: 'TollgateAuthChecksFail',
        isCounter: true,
      },
      {
        metric: 'global_auth_email_send_errors_total',
        text: 'The mail server rejects mails or does not respond',
        alert: 'TollgateAuthMailFails',
        isCounter: true,
      },
    ],
  },
  {
    kind: 'xDS server',
    sign: 'tollgate_xds_streams',
    counts: {},
    signals: [
      {
        metric: 'tollgate_xds_objects',
        when: ({ labels, value }) => labels.reason !== 'Accepted' && value > 0,
        text: 'RateLimitConfig objects are rejected',
        alert: 'TollgateXdsInvalidObjects',
        isCounter: false,
      },
      {
        metric: 'tollgate_xds_rejecting_limiters',
        when: ({ value }) => value > 0,
        text: 'A limiter refuses its configuration',
        alert: 'TollgateXdsLimiterRefuses',
        isCounter: false,
      },
      {
        metric: 'tollgate_xds_policy_problems',
        when: ({ value }) => value > 0,
        text: 'AccessPolicy objects are invalid, or have no target',
        alert: 'TollgateXdsInvalidPolicies',
        isCounter: false,
      },
      {
        metric: 'tollgate_xds_source_synced',
        when: ({ value }) => value === 0,
        text: 'The xDS server has not read all objects',
        alert: 'TollgateXdsNotSynced',
        isCounter: false,
      },
    ],
  },
];

/** Names of all metrics that are read. */
export const metricNames: ReadonlySet<string> = new Set([
  'process_start_time_seconds',
  'tollgate_build_info',
  limiterErrors,
  ...families.flatMap(({ sign, durations, signals }) => [
    sign,
    ...(durations === undefined ? [] : [`${durations}_bucket`]),
    ...signals.map(({ metric }) => metric),
  ]),
]);

/** Reads the page of a replica. @throws Error when it is of another program */
export function readReplica(metrics: Metrics): {
  readonly kind: ReplicaKind;
  readonly version: string | undefined;
  readonly totals: Totals;
  readonly signals: readonly Signal[];
} {
  const family = families.find(({ sign }) => metrics.has(sign));
  if (family === undefined) throw new Error('the page has no metrics of a service of Tollgate');
  const counts = { allowed: 0, refused: 0, denied: 0, errors: 0 };
  for (const name of rateNames) counts[name] = family.counts[name]?.(metrics) ?? 0;
  const buckets = new Map<number, number>();
  for (const { labels, value } of metrics.get(`${family.durations}_bucket`) ?? []) {
    const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le);
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
  }
  const startedAt = metrics.get('process_start_time_seconds')?.[0]?.value ?? 0;
  const signals = family.signals.map(({ metric, when = () => true, ...signal }) => {
    const samples = (metrics.get(metric) ?? []).filter(when);
    const value = signal.isCounter ? samples.reduce((all, sample) => all + sample.value, 0) : samples.length;
    return { ...signal, value };
  });
  const version = metrics.get('tollgate_build_info')?.[0]?.labels.version;
  return { kind: family.kind, version, totals: { startedAt, counts, buckets }, signals };
}

function sum(
  metrics: Metrics,
  name: string,
  isIncluded: (labels: Sample['labels']) => boolean = () => true,
): number {
  return (metrics.get(name) ?? []).reduce(
    (all, { labels, value }) => (isIncluded(labels) ? all + value : all),
    0,
  );
}
