import type { MetricMapper, Observer, StatType } from './metric-mapper.ts';
import { ruleStatPrefix, ruleStats } from './names.ts';
import {
  formatLabels,
  histogramSamples,
  type MetricFamily,
  type MetricLabels,
  type MetricSample,
  rulesWithHits,
  toMetricName,
} from './prometheus-format.ts';
import type { StatsRegistry, StatTags, Timer } from './registry.ts';

interface MappedStat {
  readonly name: string;
  readonly tags?: StatTags | undefined;
}

interface Family {
  readonly help: string;
  readonly type: MetricFamily['type'];
  /** Samples by labels: different statistics may become one series. */
  readonly samples: Map<string, MetricSample[]>;
}

/**
 * All statistics with the names and labels of a mapping file. Those without a mapping keep their
 * names, with `_` for characters that a metric name cannot have.
 */
export async function* mappedMetrics(
  registry: StatsRegistry,
  mapper: MetricMapper,
): AsyncGenerator<MetricFamily> {
  const families = new MappedFamilies(mapper);
  for (const counter of registry.counters()) families.addNumber(counter, 'counter', counter.value);
  for (const [, counter] of registry.unknownDomains()) families.addNumber(counter, 'counter', counter.value);
  for (const gauge of registry.gauges()) families.addNumber(gauge, 'gauge', gauge.value);
  for await (const rule of rulesWithHits(registry)) {
    for (const [field, stat] of ruleStats) {
      const value = rule[field];
      if (value > 0) families.addNumber({ name: `${ruleStatPrefix}${rule.key}.${stat}` }, 'counter', value);
    }
  }
  for (const timer of registry.timers()) families.addTimer(timer);
  yield* families.all();
}

class MappedFamilies {
  readonly #mapper: MetricMapper;
  readonly #families = new Map<string, Family>();

  constructor(mapper: MetricMapper) {
    this.#mapper = mapper;
  }

  /** Counters of one series are summed; of gauges the last one counts. */
  addNumber(stat: MappedStat, type: 'counter' | 'gauge', value: number): void {
    this.#add(stat, type, ({ labels, scale, samples }) => {
      const before = type === 'counter' ? (samples?.[0]?.value ?? 0) : 0;
      return [{ labels, value: before + value * scale }];
    });
  }

  addTimer(timer: Timer): void {
    this.#add(timer, 'observer', ({ labels, observer, scale, samples }) => {
      // Two timers of one series would have to be merged bucket by bucket; the first one counts.
      if (samples !== undefined) return samples;
      return [...observerSamples(timer, observer, { labels, scale })];
    });
  }

  *all(): Generator<MetricFamily> {
    for (const [name, { help, type, samples }] of this.#families) {
      yield { name, help, type, samples: [...samples.values()].flat() };
    }
  }

  #add(
    { name: statName, tags }: MappedStat,
    statType: StatType,
    update: (series: {
      readonly labels: MetricLabels;
      readonly observer: Observer;
      readonly scale: number;
      readonly samples: MetricSample[] | undefined;
    }) => MetricSample[],
  ): void {
    const mapped = this.#mapper.map(statName, statType);
    if (mapped?.mapping.drop) return;
    const observer = mapped?.mapping.observer ?? this.#mapper.defaultObserver;
    const type = statType === 'observer' ? observer.type : statType;
    const name = mapped?.name ?? toMetricName(statName);
    let family = this.#families.get(name);
    if (family === undefined) {
      const help = mapped?.mapping.help ?? `From the ${statType} ${statName}.`;
      family = { help, type, samples: new Map() };
      this.#families.set(name, family);
    }
    // A name has one type: what came first, as in statsd_exporter.
    if (family.type !== type) return;
    const labels = mergeLabels(mapped?.labels ?? [], tags);
    const identity = formatLabels(labels);
    const scale = mapped?.mapping.scale ?? 1;
    family.samples.set(identity, update({ labels, observer, scale, samples: family.samples.get(identity) }));
  }
}

/** Sorted, so that the order in the file does not make two series of one. */
function mergeLabels(mapped: MetricLabels, tags: StatTags = {}): MetricLabels {
  const labels = new Map(Object.entries(tags).map(([key, value]) => [toMetricName(key), value]));
  for (const [name, value] of mapped) labels.set(name, value);
  return [...labels].sort(([left], [right]) => (left < right ? -1 : 1));
}

function observerSamples(
  { histogram }: Timer,
  observer: Observer,
  { labels, scale }: { readonly labels: MetricLabels; readonly scale: number },
): Iterable<MetricSample> {
  const sum = histogram.sumMs * scale;
  if (observer.type === 'histogram') {
    const bounds = observer.buckets.map((bound) => [bound, bound / scale] as const);
    return histogramSamples(histogram, labels, { bounds, sum });
  }
  const quantiles = observer.quantiles.map((quantile) => ({
    labels: [...labels, ['quantile', String(quantile)] as const],
    value: histogram.count === 0 ? Number.NaN : histogram.quantileMs(quantile) * scale,
  }));
  return [
    ...quantiles,
    { suffix: '_sum', labels, value: sum },
    { suffix: '_count', labels, value: histogram.count },
  ];
}
