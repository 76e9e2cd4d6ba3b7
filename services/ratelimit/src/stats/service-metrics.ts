import {
  flatCounters,
  type MetricFamily,
  type MetricLabels,
  type MetricSample,
  metricName,
} from './metric-family.ts';
import { sanitiseStatKey } from './stats-key.ts';
import type { Counter, Gauge, StatsRegistry, StatTags, Timer } from './stats-registry.ts';
import { bucketBoundsMs } from './timing-histogram.ts';

/** In which unit response times are exported. */
export interface ServiceMetricsOptions {
  /** `PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS`: buckets and sums in milliseconds; the name stays. */
  readonly responseTimeAsMilliseconds: boolean;
}

/** How names of statistics become names and labels of metrics; what no line matches is only made fit to be a name. */
const namePatterns: readonly { pattern: RegExp; name: string; label: string }[] = [
  {
    pattern: /^ratelimit\.service\.call\.should_rate_limit\.(.+)$/,
    name: 'ratelimit_service_should_rate_limit_error',
    label: 'err_type',
  },
  {
    pattern: /^ratelimit_server\.(.+)\.total_requests$/,
    name: 'ratelimit_service_total_requests',
    label: 'grpc_method',
  },
  {
    pattern: /^ratelimit_server\.(.+)\.response_time$/,
    name: 'ratelimit_service_response_time_seconds',
    label: 'grpc_method',
  },
];

/** Yields all statistics except those of rules as metrics: the built-in mapping of the original. */
export function* serviceMetrics(
  registry: StatsRegistry,
  options: ServiceMetricsOptions,
): Generator<MetricFamily> {
  yield* numberFamilies(registry.counters(), 'counter');
  yield unknownDomains(registry);
  // The original's names of the same: its default mapping has no line for them.
  yield* flatCounters(Array.from(registry.unknownDomains(), ([, counter]) => counter));
  yield* numberFamilies(registry.gauges(), 'gauge');
  for (const [name, timers] of groupByName(registry.timers())) {
    const scale = options.responseTimeAsMilliseconds ? 1 : 1000;
    yield {
      name,
      help: `Durations from the timer ${timers[0]?.stat.name}.`,
      type: 'histogram',
      samples: histogramSamples(timers, scale),
    };
  }
}

interface Mapped<T> {
  readonly stat: T;
  readonly labels: MetricLabels;
}

function* numberFamilies(
  stats: Iterable<Counter | Gauge>,
  type: 'counter' | 'gauge',
): Generator<MetricFamily> {
  for (const [name, mapped] of groupByName(stats)) {
    const samples = mapped.map(({ stat, labels }) => ({ labels, value: stat.value }));
    yield { name, help: `From the ${type} ${mapped[0]?.stat.name}.`, type, samples };
  }
}

function unknownDomains(registry: StatsRegistry): MetricFamily {
  return {
    name: 'ratelimit_service_rate_limit_domain_not_found',
    help: 'Descriptors of requests to a domain without configuration.',
    type: 'counter',
    samples: Array.from(registry.unknownDomains(), ([domain, { value }]) => ({
      labels: [['domain', sanitiseStatKey(domain)]],
      value,
    })),
  };
}

function groupByName<T extends { readonly name: string; readonly tags: StatTags | undefined }>(
  stats: Iterable<T>,
): Map<string, Mapped<T>[]> {
  const groups = new Map<string, Mapped<T>[]>();
  for (const stat of stats) {
    const { name, labels } = mapName(stat.name);
    const tags = Object.entries(stat.tags ?? {}).map(([key, value]) => [metricName(key), value] as const);
    const mapped = { stat, labels: [...labels, ...tags] };
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [mapped]);
    else group.push(mapped);
  }
  return groups;
}

function mapName(statName: string): { name: string; labels: MetricLabels } {
  for (const { pattern, name, label } of namePatterns) {
    const value = pattern.exec(statName)?.[1];
    if (value !== undefined) return { name, labels: [[label, value]] };
  }
  return { name: metricName(statName), labels: [] };
}

function* histogramSamples(timers: readonly Mapped<Timer>[], scale: number): Generator<MetricSample> {
  for (const { stat, labels } of timers) {
    const { count, sumMs, buckets } = stat.histogram;
    let atMost = 0;
    for (const [i, boundMs] of bucketBoundsMs.entries()) {
      atMost += buckets[i] ?? 0;
      yield { suffix: '_bucket', labels: [...labels, ['le', String(boundMs / scale)]], value: atMost };
    }
    yield { suffix: '_bucket', labels: [...labels, ['le', '+Inf']], value: count };
    yield { suffix: '_sum', labels, value: sumMs / scale };
    yield { suffix: '_count', labels, value: count };
  }
}
