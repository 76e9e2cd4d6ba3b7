import { RecentlyUsed } from '@tollgate/kit/collections';
import type { RE2JS } from 're2js';
import { toMetricName } from './prometheus-format.ts';

export type StatType = 'counter' | 'gauge' | 'observer';

/** How a timer is exported. */
export type Observer =
  | { readonly type: 'histogram'; readonly buckets: readonly number[] }
  | { readonly type: 'summary'; readonly quantiles: readonly number[] };

/** An entry of `mappings` in a mapping file. */
export interface MetricMapping {
  /** Segments of a glob, in which `*` is any segment; or a pattern that may match anywhere. */
  readonly match: readonly string[] | RE2JS;
  readonly statType: StatType | undefined;
  readonly drop: boolean;
  /** Name and label values refer to captures: `$1`. */
  readonly name: string;
  readonly labels: readonly (readonly [name: string, value: string])[];
  readonly observer: Observer;
  /** Factor of the values. */
  readonly scale: number;
  readonly help: string | undefined;
}

/** A mapping that was applied to a name. */
export interface MappedMetric {
  readonly name: string;
  readonly labels: readonly (readonly [name: string, value: string])[];
  readonly mapping: MetricMapping;
}

/** Results are kept for this many names: about 20,000 rules with six statistics each. */
const maxKnownNames = 131_072;

/**
 * Maps names of statistics to metrics as statsd_exporter does: globs first, then regular
 * expressions in their order.
 * @see https://github.com/prometheus/statsd_exporter#metric-mapping-and-configuration
 */
export class MetricMapper {
  readonly #globs: readonly { readonly segments: readonly string[]; readonly mapping: MetricMapping }[];
  readonly #patterns: readonly { readonly pattern: RE2JS; readonly mapping: MetricMapping }[];
  readonly #known = new RecentlyUsed<MappedMetric | 'unmapped'>({ capacity: maxKnownNames });
  /** Observer of timers without a mapping. */
  readonly defaultObserver: Observer;

  /** `mostSpecific`: of several globs the most specific one wins, not the first. */
  constructor(
    mappings: readonly MetricMapping[],
    options: { readonly mostSpecific: boolean; readonly defaultObserver: Observer },
  ) {
    const globs = mappings.flatMap((mapping) =>
      isGlob(mapping.match) ? [{ segments: mapping.match, mapping }] : [],
    );
    this.#globs = options.mostSpecific ? globs.sort(bySpecificity) : globs;
    this.#patterns = mappings.flatMap((mapping) =>
      isGlob(mapping.match) ? [] : [{ pattern: mapping.match, mapping }],
    );
    this.defaultObserver = options.defaultObserver;
  }

  /** Undefined when no mapping matches. */
  map(statName: string, type: StatType): MappedMetric | undefined {
    const key = `${type} ${statName}`;
    let known = this.#known.get(key);
    if (known === undefined) {
      known = this.#mapGlob(statName, type) ?? this.#mapPattern(statName, type) ?? 'unmapped';
      this.#known.set(key, known);
    }
    return known === 'unmapped' ? undefined : known;
  }

  #mapGlob(statName: string, type: StatType): MappedMetric | undefined {
    const segments = statName.split('.');
    for (const { segments: wanted, mapping } of this.#globs) {
      if (wanted.length !== segments.length || !accepts(mapping, type)) continue;
      if (!wanted.every((segment, i) => segment === '*' || segment === segments[i])) continue;
      const captures = segments.filter((_, i) => wanted[i] === '*');
      return apply(mapping, (template) => expandGlob(template, [statName, ...captures]));
    }
    return undefined;
  }

  #mapPattern(statName: string, type: StatType): MappedMetric | undefined {
    for (const { pattern, mapping } of this.#patterns) {
      if (!accepts(mapping, type)) continue;
      const match = pattern.exec(statName);
      if (match !== null) return apply(mapping, (template) => expandPattern(template, match));
    }
    return undefined;
  }
}

function isGlob(match: readonly string[] | RE2JS): match is readonly string[] {
  return Array.isArray(match);
}

/**
 * The first segment in which two globs differ decides: text comes before `*`. Only globs of one
 * length are comparable that way, and only they can match the same name.
 */
function bySpecificity(
  { segments: left }: { readonly segments: readonly string[] },
  { segments: right }: { readonly segments: readonly string[] },
): number {
  if (left.length !== right.length) return left.length - right.length;
  const at = left.findIndex((segment, i) => (segment === '*') !== (right[i] === '*'));
  if (at === -1) return 0;
  return left[at] === '*' ? 1 : -1;
}

function accepts({ statType }: MetricMapping, type: StatType): boolean {
  return statType === undefined || statType === type;
}

function apply(mapping: MetricMapping, expand: (template: string) => string): MappedMetric {
  const labels = mapping.labels.map(([name, value]) => [name, expand(value)] as const);
  return { name: toMetricName(expand(mapping.name)), labels, mapping };
}

/** Replaces `$1` and `${1}`; unknown captures are empty. */
function expandGlob(template: string, captures: readonly string[]): string {
  return template.replace(/\$\{?([A-Za-z0-9_$]+)\}?/g, (_, name: string) =>
    /^\d+$/.test(name) ? (captures[Number(name)] ?? '') : '',
  );
}

/**
 * Replaces `$1`, `$name`, `${1}x` and `$$`, as `Regexp.Expand` of Go: a name is as long as
 * possible, and unknown ones are empty.
 */
function expandPattern(
  template: string,
  match: readonly (string | undefined)[] & { readonly groups?: unknown },
): string {
  return template.replace(/\$(?:\$|(\w+)|\{(\w+)\})/g, (_whole, bare?: string, braced?: string) => {
    const name = bare ?? braced;
    if (name === undefined) return '$';
    if (/^\d+$/.test(name)) return match[Number(name)] ?? '';
    const groups = (match.groups ?? {}) as Readonly<Record<string, string | undefined>>;
    return Object.hasOwn(groups, name) ? (groups[name] ?? '') : '';
  });
}
