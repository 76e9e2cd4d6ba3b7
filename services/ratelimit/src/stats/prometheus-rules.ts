import { localCacheStat, ruleStatPrefix, ruleStats } from './names.ts';
import {
  flatCounters,
  labelText,
  type MetricFamily,
  type MetricLabels,
  type MetricSample,
} from './prometheus-format.ts';
import type { RuleCounters, StatsRegistry } from './registry.ts';

/** Lets other work run. Called every so often while many series are gathered, so that a scrape does not hold up decisions. */
export type Breathe = () => Promise<void>;

/** How our own metrics are bounded. */
export interface RuleMetricsOptions {
  /** Rules that get series of their own in `tollgate_ratelimit_hits_total`; the rest is summed under `rule="_other"`. */
  readonly maxRules: number;
}

const rulesPerBreath = 500;
const maxLevelLabels = 4;

/** Value of the label `result` of `tollgate_ratelimit_hits_total` → the counter behind it. */
const resultFields = [
  ['within', 'withinLimit'],
  ['near', 'nearLimit'],
  ['over', 'overLimit'],
  ['over_local_cache', 'overLimitWithLocalCache'],
  ['shadow', 'shadowMode'],
] as const;

type RuleValues = Pick<RuleCounters, (typeof ruleStats)[number][0]>;

interface SummedRule {
  readonly labels: MetricLabels;
  readonly sum: { -readonly [field in keyof RuleValues]: RuleValues[field] };
}

/**
 * Yields the counters of rules twice: as `ratelimit_service_rate_limit_<stat>` with the labels that dashboards of the
 * original know (`domain`, `key1`, `key2`; rules that differ only in deeper levels are summed), and as
 * `tollgate_ratelimit_hits_total` with a label for each level. Rules that were never hit have no series. Hits of the local
 * cache have the original's name besides: its default mapping leaves the whole name of the statistic to them.
 */
export async function* ruleMetrics(
  registry: StatsRegistry,
  options: RuleMetricsOptions,
  breathe: Breathe,
): AsyncGenerator<MetricFamily> {
  const byKeys = new Map<string, SummedRule>();
  const byLevels = new Map<string, SummedRule>();
  const localCacheHits: { name: string; value: number }[] = [];
  let visited = 0;
  for (const rule of registry.rules()) {
    visited += 1;
    if (visited % rulesPerBreath === 0) await breathe();
    if (rule.totalHits === 0) continue;
    addTo(byKeys, keyLabels(rule), rule);
    addTo(byLevels, byLevels.size < options.maxRules ? levelLabels(rule) : otherLabels(rule.domain), rule);
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
      samples: samplesOf(byKeys, field),
    };
  }
  yield* flatCounters(localCacheHits);
  yield {
    name: 'tollgate_ratelimit_hits_total',
    help: 'Hits of rules by result. Results overlap: near hits are also within or over, local cache and shadow hits also over.',
    type: 'counter',
    samples: resultSamples(byLevels),
  };
}

/** The original takes them from the dotted name, so that a dot in a domain or a key is a border, too. */
function keyLabels({ key }: RuleCounters): MetricLabels {
  const [domain = '', key1, key2] = key.split('.', 3);
  const labels: [string, string][] = [['domain', domain]];
  if (key1 !== undefined) labels.push(['key1', key1]);
  if (key2 !== undefined) labels.push(['key2', key2]);
  return labels;
}

function levelLabels({ domain, levels }: RuleCounters): MetricLabels {
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

function addTo(rules: Map<string, SummedRule>, labels: MetricLabels, rule: RuleCounters): void {
  const identity = labelText(labels);
  const known = rules.get(identity);
  if (known === undefined) {
    const { totalHits, overLimit, nearLimit, overLimitWithLocalCache, withinLimit, shadowMode } = rule;
    const sum = { totalHits, overLimit, nearLimit, overLimitWithLocalCache, withinLimit, shadowMode };
    rules.set(identity, { labels, sum });
    return;
  }
  for (const [field] of ruleStats) known.sum[field] += rule[field];
}

function* samplesOf(rules: Map<string, SummedRule>, field: keyof RuleValues): Generator<MetricSample> {
  for (const { labels, sum } of rules.values()) yield { labels, value: sum[field] };
}

function* resultSamples(rules: Map<string, SummedRule>): Generator<MetricSample> {
  for (const { labels, sum } of rules.values()) {
    for (const [result, field] of resultFields) {
      yield { labels: [...labels, ['result', result]], value: sum[field] };
    }
  }
}
