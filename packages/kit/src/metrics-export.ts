import type { Attributes, HrTime, ValueType } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { MetricData, MetricProducer, PushMetricExporter } from '@opentelemetry/sdk-metrics';
import type { Registry } from 'prom-client';
import type { LifecycleComponent } from './lifecycle.ts';
import type { Logger } from './logger.ts';
import { makeResource, type OtlpProtocol, type ResourceOptions } from './telemetry.ts';

/** The period that cumulative values cover. */
export type Period = {
  /** Start of the counting, Unix time in milliseconds. */
  readonly startedMs: number;
  readonly nowMs: number;
};

type Sample = {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly metricName?: string;
};
type Family = {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly Sample[];
};
type Descriptor = MetricData['descriptor'];

/**
 * Converts a registry of Prometheus metrics to OpenTelemetry. Summaries, which it does not have,
 * become gauges.
 */
export async function readRegistry(registry: Registry, period: Period): Promise<MetricData[]> {
  const sdk = await import('@opentelemetry/sdk-metrics');
  const times = { startTime: toHrTime(period.startedMs), endTime: toHrTime(period.nowMs) };
  const aggregationTemporality = sdk.AggregationTemporality.CUMULATIVE;
  const toPoint = (sample: Sample) => ({
    ...times,
    attributes: toAttributes(sample),
    value: sample.value,
  });

  function toMetric({ name, help, type, values }: Family): MetricData {
    const descriptor: Descriptor = { name, description: help, unit: unitFromName(name), valueType: double };
    const base = { descriptor, aggregationTemporality };
    if (type === 'histogram')
      return {
        ...base,
        dataPointType: sdk.DataPointType.HISTOGRAM,
        dataPoints: histograms(name, values).map((histogram) => ({ ...times, ...histogram })),
      };
    const dataPoints = values.map(toPoint);
    return type === 'counter'
      ? { ...base, dataPointType: sdk.DataPointType.SUM, isMonotonic: true, dataPoints }
      : { ...base, dataPointType: sdk.DataPointType.GAUGE, dataPoints };
  }

  // Parsed boundary: the library's type leaves out the names of a histogram's series.
  const families = (await registry.getMetricsAsJSON()) as unknown as readonly Family[];
  return families.filter(({ values }) => values.length > 0).map(toMetric);
}

/** `ValueType.DOUBLE`; the enum itself would load the API. */
const double = 1 as ValueType;

type HistogramPoint = {
  readonly attributes: Attributes;
  readonly value: {
    readonly buckets: { readonly boundaries: number[]; readonly counts: number[] };
    readonly sum: number;
    readonly count: number;
  };
};

/**
 * Joins the series `_bucket`, `_sum` and `_count` by their labels. Buckets are cumulative in
 * Prometheus, and not in OpenTelemetry.
 */
function histograms(name: string, samples: readonly Sample[]): HistogramPoint[] {
  const points = new Map<
    string,
    { attributes: Attributes; buckets: [number, number][]; sum: number; count: number }
  >();
  for (const sample of samples) {
    const { le, ...labels } = sample.labels;
    const key = JSON.stringify(labels);
    const point = points.get(key) ?? { attributes: { ...labels }, buckets: [], sum: 0, count: 0 };
    points.set(key, point);
    if (sample.metricName === `${name}_sum`) point.sum = sample.value;
    else if (sample.metricName === `${name}_count`) point.count = sample.value;
    else if (typeof le === 'number') point.buckets.push([le, sample.value]);
  }
  return [...points.values()].map(({ attributes, buckets, sum, count }) => {
    const sorted = buckets.toSorted(([a], [b]) => a - b);
    const upTo = [0, ...sorted.map(([, total]) => total), count];
    const counts = upTo.slice(1).map((total, i) => total - (upTo[i] ?? 0));
    return { attributes, value: { buckets: { boundaries: sorted.map(([le]) => le), counts }, sum, count } };
  });
}

function toAttributes({ labels, metricName }: Sample): Attributes {
  // The series of a summary share one name in OpenTelemetry.
  return metricName === undefined ? { ...labels } : { ...labels, series: metricName };
}

/** Prometheus names end with their unit. */
function unitFromName(name: string): string {
  if (/_seconds(_total)?$/.test(name)) return 's';
  return /_bytes$/.test(name) ? 'By' : '';
}

function toHrTime(ms: number): HrTime {
  return [Math.floor(ms / 1000), (ms % 1000) * 1_000_000];
}

/**
 * Options of a metrics export. The exporter reads its target from the standard
 * `OTEL_EXPORTER_OTLP_*` variables.
 */
export type MetricsExportOptions = ResourceOptions & {
  readonly registry: Registry;
  readonly protocol: OtlpProtocol;
  /**
   * Time between two exports. Default one minute, as in OpenTelemetry
   * (OTEL_METRIC_EXPORT_INTERVAL).
   */
  readonly everyMs?: number;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly logger: Logger;
};

const defaultEveryMs = 60_000;
const maxTimeoutMs = 10_000;

/**
 * Exports the metrics of a registry over OTLP, under the names that a scraper would see. The last
 * export is at the stop.
 */
export class MetricsExport implements LifecycleComponent {
  readonly name = 'metrics export';
  readonly #options: MetricsExportOptions;
  #shutdown: (() => Promise<void>) | undefined;

  constructor(options: MetricsExportOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { protocol, logger, everyMs = defaultEveryMs } = this.#options;
    const { MeterProvider, PeriodicExportingMetricReader } = await import('@opentelemetry/sdk-metrics');
    const resource = await makeResource(this.#options);
    const reader = new PeriodicExportingMetricReader({
      exporter: reportOutages(await makeExporter(protocol), logger),
      exportIntervalMillis: everyMs,
      exportTimeoutMillis: Math.min(maxTimeoutMs, everyMs),
      metricProducers: [this.#producer(resource)],
    });
    const provider = new MeterProvider({ resource, readers: [reader] });
    this.#shutdown = () => provider.shutdown();
  }

  async stop(): Promise<void> {
    // Rejects with the error of the last export, which was logged.
    await this.#shutdown?.().catch(() => undefined);
  }

  #producer(resource: Resource): MetricProducer {
    const { registry, nowMs } = this.#options;
    const startedMs = nowMs();
    return {
      async collect() {
        const metrics = await readRegistry(registry, { startedMs, nowMs: nowMs() });
        return {
          resourceMetrics: { resource, scopeMetrics: [{ scope: { name: 'tollgate' }, metrics }] },
          errors: [],
        };
      },
    };
  }
}

async function makeExporter(protocol: OtlpProtocol): Promise<PushMetricExporter> {
  if (protocol === 'grpc') {
    const { OTLPMetricExporter } = await import('@opentelemetry/exporter-metrics-otlp-grpc');
    return new OTLPMetricExporter();
  }
  if (protocol === 'http/protobuf') {
    const { OTLPMetricExporter } = await import('@opentelemetry/exporter-metrics-otlp-proto');
    return new OTLPMetricExporter();
  }
  const { OTLPMetricExporter } = await import('@opentelemetry/exporter-metrics-otlp-http');
  return new OTLPMetricExporter();
}

/** Logs the first failed export of an outage, and its end; the SDK logs neither. */
function reportOutages(exporter: PushMetricExporter, logger: Logger): PushMetricExporter {
  let failing = false;
  return {
    export(metrics, done) {
      exporter.export(metrics, (result) => {
        const failed = result.code !== 0;
        if (failed && !failing) logger.warn({ err: result.error }, 'cannot export metrics');
        if (!failed && failing) logger.info('exporting metrics again');
        failing = failed;
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}
