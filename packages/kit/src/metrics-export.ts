import type { MetricProducer, PushMetricExporter, ResourceMetrics } from '@opentelemetry/sdk-metrics';
import type { Registry } from 'prom-client';
import type { LifecycleComponent } from './lifecycle.ts';
import type { Logger } from './logger.ts';
import { readRegistry } from './registry-metrics.ts';
import type { OtlpProtocol } from './telemetry.ts';
import { makeResource, type ResourceOptions } from './telemetry-resource.ts';

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
