import { compareText } from '@tollgate/kit/text';
import { tagSuffix } from './stat-tags.ts';
import { ruleStatPrefix, ruleStats } from './stats-names.ts';
import type { StatsRegistry, StatTags } from './stats-registry.ts';

/**
 * Writes all statistics as `name: value` lines, sorted by name, for `GET /stats` of the debug port. Timers show count, sum,
 * median and 99th percentile in milliseconds, all since the start. Rules that were never hit are left out.
 */
export function statsText(registry: StatsRegistry): string {
  const values = new Map<string, string>();
  const sums = new Map<string, number>();
  // Series whose keys differ only in what sanitising replaces share a name: the name shows their sum.
  const add = (name: string, value: number) => sums.set(name, (sums.get(name) ?? 0) + value);

  for (const counter of registry.counters()) add(labelOf(counter), counter.value);
  for (const [, counter] of registry.unknownDomains()) add(counter.name, counter.value);
  for (const gauge of registry.gauges()) add(labelOf(gauge), gauge.value);
  for (const rule of registry.rules()) {
    if (rule.totalHits === 0) continue;
    for (const [field, stat] of ruleStats) add(`${ruleStatPrefix}${rule.key}.${stat}`, rule[field]);
  }
  for (const timer of registry.timers()) {
    const { count, sumMs } = timer.histogram;
    const p50 = timer.histogram.quantileMs(0.5).toFixed(2);
    const p99 = timer.histogram.quantileMs(0.99).toFixed(2);
    values.set(labelOf(timer), `count=${count} sum=${sumMs.toFixed(2)}ms p50=${p50}ms p99=${p99}ms`);
  }
  for (const [name, sum] of sums) values.set(name, String(sum));
  return [...values.keys()]
    .sort(compareText)
    .map((name) => `${name}: ${values.get(name)}\n`)
    .join('');
}

function labelOf(stat: { readonly name: string; readonly tags: StatTags | undefined }): string {
  return stat.tags === undefined ? stat.name : stat.name + tagSuffix(stat.tags);
}
