import { TimeSlices } from '@tollgate/kit/time';
import { bucketBoundsMs, type TimingHistogram } from './histogram.ts';
import { localCacheStat, ruleStatPrefix, ruleStats, sanitiseStatKey, trialStats } from './names.ts';
import type { Counter, Gauge, RuleStats, StatsRegistry, StatTags } from './registry.ts';
import type { TrialSeries } from './trial-series.ts';

export type MetricLabels = readonly (readonly [name: string, value: string])[];

export interface MetricSample {
  /** `_bucket`, `_sum` or `_count` of histograms. */
  readonly suffix?: string;
  readonly labels: MetricLabels;
  readonly value: number;
}

export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly samples: Iterable<MetricSample>;
}

/**
 * Converts a text to a metric or label name: letters, digits and `_`, not starting with a digit.
 */
export function toMetricName(text: string): string {
  const clean = text.replace(/[^A-Za-z0-9_]/gu, '_');
  return /^\d/.test(clean) ? `_${clean}` : clean;
}

/**
 * Counters without labels whose names come from request values or rules; those with equal names are
 * summed.
 */
function* flatCounters(
  counters: Iterable<{ readonly name: string; readonly value: number }>,
): Generator<MetricFamily> {
  const sums = new Map<string, { readonly from: string; value: number }>();
  for (const { name, value } of counters) {
    const metric = toMetricName(name);
    const known = sums.get(metric);
    if (known === undefined) sums.set(metric, { from: name, value });
    else known.value += value;
  }
  for (const [name, { from, value }] of sums) {
    yield { name, help: `From the counter ${from}.`, type: 'counter', samples: [{ labels: [], value }] };
  }
}

/** Formats labels as `key="value",…`. */
export function formatLabels(labels: MetricLabels): string {
  return labels.map(([name, value]) => `${name}="${escapeLabelValue(value)}"`).join(',');
}

/**
 * The lines of a family in the text format of Prometheus. `extraLabels` are added to every sample,
 * unless it has a label of that name.
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 */
export function* formatFamily(family: MetricFamily, extraLabels: MetricLabels = []): Generator<string> {
  yield `# HELP ${family.name} ${family.help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')}\n`;
  yield `# TYPE ${family.name} ${family.type}\n`;
  for (const { suffix = '', labels, value } of family.samples) {
    const own = new Set(labels.map(([name]) => name));
    const all = [...labels, ...extraLabels.filter(([name]) => !own.has(name))];
    const braces = all.length === 0 ? '' : `{${formatLabels(all)}}`;
    yield `${family.name}${suffix}${braces} ${formatNumber(value)}\n`;
  }
}

function escapeLabelValue(value: string): string {
  return /[\\"\n]/.test(value)
    ? value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
    : value;
}

function formatNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}

interface ServiceMetricsOptions {
  /**
   * `PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS`: buckets and sums in milliseconds; the name stays.
   */
  readonly responseTimeAsMilliseconds: boolean;
}

/**
 * Maps names of statistics to names and labels of metrics; other names are only converted by
 * `toMetricName`.
 */
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
  {
    pattern: /^ratelimit\.store\.(.+)\.exchange_time$/,
    name: 'ratelimit_store_exchange_time_seconds',
    label: 'store',
  },
  {
    pattern: /^ratelimit\.store\.(.+)\.exchange_error$/,
    name: 'ratelimit_store_exchange_error',
    label: 'store',
  },
];

/** All statistics except those of rules, as in the default mapping of envoyproxy/ratelimit. */
export function* serviceMetrics(
  registry: StatsRegistry,
  options: ServiceMetricsOptions,
): Generator<MetricFamily> {
  yield* numberFamilies(registry.counters(), 'counter');
  yield unknownDomains(registry);
  // Names are full: the default mapping of envoyproxy/ratelimit has no line for them.
  yield* flatCounters(Array.from(registry.unknownDomains(), ([, counter]) => counter));
  yield* numberFamilies(registry.gauges(), 'gauge');
  for (const [name, timers] of groupByName(registry.timers())) {
    const scale = options.responseTimeAsMilliseconds ? 1 : 1000;
    yield {
      name,
      help: `Durations from the timer ${timers[0]?.stat.name}.`,
      type: 'histogram',
      samples: timers.flatMap(({ stat: { histogram }, labels }) => {
        const bounds = bucketBoundsMs.map((boundMs) => [boundMs / scale, boundMs] as const);
        return [...histogramSamples(histogram, labels, { bounds, sum: histogram.sumMs / scale })];
      }),
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
    const tags = Object.entries(stat.tags ?? {}).map(([key, value]) => [toMetricName(key), value] as const);
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
  return { name: toMetricName(statName), labels: [] };
}

/** Samples of a histogram with the cumulative count for each bound. */
export function* histogramSamples(
  histogram: TimingHistogram,
  labels: MetricLabels,
  exported: { readonly bounds: Iterable<readonly [bound: number, boundMs: number]>; readonly sum: number },
): Generator<MetricSample> {
  for (const [bound, boundMs] of exported.bounds) {
    const value = histogram.countAtMost(boundMs);
    yield { suffix: '_bucket', labels: [...labels, ['le', String(bound)]], value };
  }
  yield { suffix: '_bucket', labels: [...labels, ['le', '+Inf']], value: histogram.count };
  yield { suffix: '_sum', labels, value: exported.sum };
  yield { suffix: '_count', labels, value: histogram.count };
}

/** Decisions wait no longer than that for a scrape. */
const sliceMs = 4;
const maxLevelLabels = 4;

/** Values of the label `result` of `tollgate_ratelimit_hits_total`, with the statistic of each. */
const resultFields = [
  ['within', 'withinLimit'],
  ['near', 'nearLimit'],
  ['over', 'overLimit'],
  ['over_local_cache', 'overLimitWithLocalCache'],
  ['shadow', 'shadowMode'],
] as const;

type RuleValues = Pick<RuleStats, (typeof ruleStats)[number][0]>;

interface SummedRule {
  readonly labels: MetricLabels;
  readonly sum: { -readonly [field in keyof RuleValues]: RuleValues[field] };
}

/**
 * The statistics of rules as `ratelimit_service_rate_limit_<stat>` with the labels of
 * envoyproxy/ratelimit (`domain`, `key1`, `key2`; rules that differ only in deeper levels are
 * summed). Rules without hits have no series. Hits of the local cache are also exported under their
 * full name, as by the default mapping of envoyproxy/ratelimit.
 */
export async function* ruleMetrics(registry: StatsRegistry): AsyncGenerator<MetricFamily> {
  const byKeys = new Map<string, SummedRule>();
  const localCacheHits: { name: string; value: number }[] = [];
  for await (const rule of rulesWithHits(registry)) {
    addTo(byKeys, keyLabels(rule), rule);
    if (rule.overLimitWithLocalCache > 0) {
      const name = `${ruleStatPrefix}${rule.key}.${localCacheStat}`;
      localCacheHits.push({ name, value: rule.overLimitWithLocalCache });
    }
  }
  for (const [field, stat] of ruleStats) {
    yield {
      name: `ratelimit_service_rate_limit_${stat}`,
      help: `Hits of rules counted as ${stat}; levels below the second are summed.`,
      type: 'counter',
      samples: toSamples(byKeys, field),
    };
  }
  yield* flatCounters(localCacheHits);
}

/** The statistics of rules with a label for each level, whatever the mapping is. */
export async function* hitMetrics(
  registry: StatsRegistry,
  { maxRules }: { readonly maxRules: number },
): AsyncGenerator<MetricFamily> {
  const byLevels = new Map<string, SummedRule>();
  for await (const rule of rulesWithHits(registry)) {
    addTo(byLevels, byLevels.size < maxRules ? levelLabels(rule) : otherLabels(rule.domain), rule);
  }
  yield {
    name: 'tollgate_ratelimit_hits_total',
    help: 'Hits of rules by result. Results overlap: near hits are also within or over, local cache and shadow hits also over.',
    type: 'counter',
    samples: resultSamples(byLevels),
  };
}

/** The counts of rules on trial, whatever the mapping is; no series without such rules. */
export function* trialMetrics(registry: StatsRegistry): Generator<MetricFamily> {
  const trial = registry.trial();
  if (trial === undefined) return;
  const results =
    'by result. Results overlap: requests are all that were compared, the others are those of them that would be refused, were refused, and both where the two differ.';
  const families = [
    { kind: 'domain', help: `Requests of domains with rules on trial ${results}` },
    { kind: 'rule', help: `Requests that rules on trial match ${results}` },
  ];
  const all = [...trial.all()];
  for (const { kind, help } of families) {
    const series = all.filter(({ rule }) => (rule !== undefined) === (kind === 'rule'));
    yield {
      name: `tollgate_ratelimit_trial_${kind}_requests_total`,
      help,
      type: 'counter',
      samples: series.flatMap((counts) => trialSamples(counts)),
    };
  }
}

function trialSamples(series: TrialSeries): MetricSample[] {
  const { domain, rule } = series;
  const labels: MetricLabels =
    rule === undefined
      ? [['domain', domain]]
      : [
          ['domain', domain],
          ['rule', rule],
        ];
  return trialStats.map(([field, result]) => ({
    labels: [...labels, ['result', result] as const],
    value: series[field],
  }));
}

/**
 * The event loop continues in between, so that a scrape does not delay decisions. By time, as the
 * patterns of a mapping file may take ten times as long as the default mapping.
 */
export async function* rulesWithHits(
  registry: StatsRegistry,
  nowMs?: () => number,
): AsyncGenerator<RuleStats> {
  const slices = new TimeSlices({ sliceMs, nowMs });
  for (const rule of registry.rules()) {
    if (slices.isOver) await slices.next();
    if (rule.totalHits > 0 || rule.totalNegativeHits > 0) yield rule;
  }
}

/**
 * As envoyproxy/ratelimit, this splits the dotted name, so that a dot in a domain or a key
 * separates, too.
 */
function keyLabels({ key }: RuleStats): MetricLabels {
  const [domain = '', key1, key2] = key.split('.', 3);
  const labels: [string, string][] = [['domain', domain]];
  if (key1 !== undefined) labels.push(['key1', key1]);
  if (key2 !== undefined) labels.push(['key2', key2]);
  return labels;
}

function levelLabels({ domain, levels }: RuleStats): MetricLabels {
  const labels: [string, string][] = [
    ['domain', domain],
    ['rule', levels.join('.')],
  ];
  for (const [i, level] of levels.slice(0, maxLevelLabels).entries()) labels.push([`level${i + 1}`, level]);
  return labels;
}

function otherLabels(domain: string): MetricLabels {
  return [
    ['domain', domain],
    ['rule', '_other'],
  ];
}

function addTo(rules: Map<string, SummedRule>, labels: MetricLabels, rule: RuleStats): void {
  const identity = formatLabels(labels);
  const known = rules.get(identity);
  if (known === undefined) {
    rules.set(identity, { labels, sum: pickValues(rule) });
    return;
  }
  for (const [field] of ruleStats) known.sum[field] += rule[field];
}

function pickValues(rule: RuleValues): SummedRule['sum'] {
  const { totalHits, overLimit, nearLimit, overLimitWithLocalCache } = rule;
  const { withinLimit, shadowMode, totalNegativeHits } = rule;
  return {
    totalHits,
    overLimit,
    nearLimit,
    overLimitWithLocalCache,
    withinLimit,
    shadowMode,
    totalNegativeHits,
  };
}

function* toSamples(rules: Map<string, SummedRule>, field: keyof RuleValues): Generator<MetricSample> {
  for (const { labels, sum } of rules.values()) yield { labels, value: sum[field] };
}

function* resultSamples(rules: Map<string, SummedRule>): Generator<MetricSample> {
  for (const { labels, sum } of rules.values()) {
    for (const [result, field] of resultFields) {
      yield { labels: [...labels, ['result', result]], value: sum[field] };
    }
  }
}
