import type { Attributes, HrTime, ValueType } from '@opentelemetry/api';
import type {
  MetricData,
  MetricProducer,
  PushMetricExporter,
  ResourceMetrics,
} from '@opentelemetry/sdk-metrics';
import type { Registry } from 'prom-client';
import type { LifecycleComponent } from './lifecycle.ts';
import type { Logger } from './logger.ts';
import { makeResource, type OtlpProtocol, type ResourceOptions } from './telemetry.ts';

/** The time that cumulative values cover. */
export type Covered = {
  /** Unix time in milliseconds at which counting began. */
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

/** Reads a registry of Prometheus metrics as OpenTelemetry has them. Summaries, which it does not know, become gauges. */
export async function readRegistry(registry: Registry, covered: Covered): Promise<MetricData[]> {
  const sdk = await import('@opentelemetry/sdk-metrics');
  const times = { startTime: toHrTime(covered.startedMs), endTime: toHrTime(covered.nowMs) };
  const aggregationTemporality = sdk.AggregationTemporality.CUMULATIVE;
  const pointOf = (sample: Sample) => ({
    ...times,
    attributes: attributesOf(sample),
    value: sample.value,
  });

  function metricOf({ name, help, type, values }: Family): MetricData {
    const descriptor: Descriptor = { name, description: help, unit: unitOf(name), valueType: double };
    const base = { descriptor, aggregationTemporality };
    if (type === 'histogram')
      return {
        ...base,
        dataPointType: sdk.DataPointType.HISTOGRAM,
        dataPoints: histograms(name, values).map((histogram) => ({ ...times, ...histogram })),
      };
    const dataPoints = values.map(pointOf);
    return type === 'counter'
      ? { ...base, dataPointType: sdk.DataPointType.SUM, isMonotonic: true, dataPoints }
      : { ...base, dataPointType: sdk.DataPointType.GAUGE, dataPoints };
  }

  // Parsed boundary: the library's type leaves out the names of a histogram's series.
  const families = (await registry.getMetricsAsJSON()) as unknown as readonly Family[];
  return families.filter(({ values }) => values.length > 0).map(metricOf);
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

/** Series `_bucket`, `_sum` and `_count` put together by their labels. Prometheus counts up through the buckets, OpenTelemetry each alone. */
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

function attributesOf({ labels, metricName }: Sample): Attributes {
  // Parts of a summary have one name here and several there.
  return metricName === undefined ? { ...labels } : { ...labels, series: metricName };
}

/** Names end with their unit, as Prometheus wants it. */
function unitOf(name: string): string {
  if (/_seconds(_total)?$/.test(name)) return 's';
  return /_bytes$/.test(name) ? 'By' : '';
}

function toHrTime(ms: number): HrTime {
  return [Math.floor(ms / 1000), (ms % 1000) * 1_000_000];
}

/** Which metrics are sent, and how. */
export type MetricsExportOptions = ResourceOptions & {
  readonly registry: Registry;
  /** Where to is said by the standard `OTEL_EXPORTER_OTLP_*` variables, which the exporter reads. */
  readonly protocol: OtlpProtocol;
  /** Time between two exports. Default one minute, as OpenTelemetry has it. */
  readonly everyMs?: number;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly logger: Logger;
};

/** OpenTelemetry's own default (OTEL_METRIC_EXPORT_INTERVAL). */
const defaultEveryMs = 60_000;
/** An export that takes longer holds up nothing but the next one. */
const mostTimeoutMs = 10_000;

/**
 * Sends the metrics of a registry over OTLP, one export after the other, the last one at the end: the same metrics that a scraper
 * would pull, under the same names.
 */
export function createMetricsExport(options: MetricsExportOptions): LifecycleComponent {
  const { everyMs = defaultEveryMs } = options;
  let shutdown: (() => Promise<void>) | undefined;
  return {
    name: 'metrics export',
    async start() {
      const { MeterProvider, PeriodicExportingMetricReader } = await import('@opentelemetry/sdk-metrics');
      const resource = await makeResource(options);
      const startedMs = options.nowMs();
      const producer: MetricProducer = {
        async collect() {
          const metrics = await readRegistry(options.registry, { startedMs, nowMs: options.nowMs() });
          const resourceMetrics: ResourceMetrics = {
            resource,
            scopeMetrics: [{ scope: { name: 'tollgate' }, metrics }],
          };
          return { resourceMetrics, errors: [] };
        },
      };
      const reader = new PeriodicExportingMetricReader({
        exporter: reportOutages(await makeExporter(options.protocol), options.logger),
        exportIntervalMillis: everyMs,
        exportTimeoutMillis: Math.min(mostTimeoutMs, everyMs),
        metricProducers: [producer],
      });
      const provider = new MeterProvider({ resource, readers: [reader] });
      shutdown = () => provider.shutdown();
    },
    async stop() {
      // It rejects with what the last export failed with, which was logged.
      await shutdown?.().catch(() => undefined);
    },
  };
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

/** Logs the first failed export of an outage, and its end; the SDK itself would say nothing. */
function reportOutages(exporter: PushMetricExporter, logger: Logger): PushMetricExporter {
  let failing = false;
  return {
    export(metrics, done) {
      exporter.export(metrics, (result) => {
        const failed = result.code !== 0;
        if (failed && !failing) logger.warn({ err: result.error }, 'metrics not exported');
        if (!failed && failing) logger.info('metrics are exported again');
        failing = failed;
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}
