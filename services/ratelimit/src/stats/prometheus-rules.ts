import { setImmediate as nextTurn } from 'node:timers/promises';
import { localCacheStat, ruleStatPrefix, ruleStats } from './names.ts';
import {
  flatCounters,
  formatLabels,
  type MetricFamily,
  type MetricLabels,
  type MetricSample,
} from './prometheus-format.ts';
import type { RuleStats, StatsRegistry } from './registry.ts';

/** The event loop continues after this many rules, so that a scrape does not delay decisions. */
const rulesPerTurn = 500;
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
 * The statistics of rules, twice: as `ratelimit_service_rate_limit_<stat>` with the labels of
 * envoyproxy/ratelimit (`domain`, `key1`, `key2`; rules that differ only in deeper levels are
 * summed), and as `tollgate_ratelimit_hits_total` with a label for each level. Rules without hits
 * have no series. Hits of the local cache are also exported under their full name, as by the
 * default mapping of envoyproxy/ratelimit.
 */
export async function* ruleMetrics(
  registry: StatsRegistry,
  { maxRules }: { readonly maxRules: number },
): AsyncGenerator<MetricFamily> {
  const byKeys = new Map<string, SummedRule>();
  const byLevels = new Map<string, SummedRule>();
  const localCacheHits: { name: string; value: number }[] = [];
  let visited = 0;
  for (const rule of registry.rules()) {
    visited += 1;
    if (visited % rulesPerTurn === 0) await nextTurn();
    if (rule.totalHits === 0) continue;
    addTo(byKeys, keyLabels(rule), rule);
    addTo(byLevels, byLevels.size < maxRules ? levelLabels(rule) : otherLabels(rule.domain), rule);
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
  yield {
    name: 'tollgate_ratelimit_hits_total',
    help: 'Hits of rules by result. Results overlap: near hits are also within or over, local cache and shadow hits also over.',
    type: 'counter',
    samples: resultSamples(byLevels),
  };
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
    const { totalHits, overLimit, nearLimit, overLimitWithLocalCache, withinLimit, shadowMode } = rule;
    const sum = { totalHits, overLimit, nearLimit, overLimitWithLocalCache, withinLimit, shadowMode };
    rules.set(identity, { labels, sum });
    return;
  }
  for (const [field] of ruleStats) known.sum[field] += rule[field];
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
