import { nameListenSettings } from '@tollgate/kit/http-server';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { addProcessMetrics, MetricsServer } from '@tollgate/kit/metrics';
import { MetricsExport } from '@tollgate/kit/metrics-export';
import { logTelemetrySdk, type OtlpProtocol, startTracing, type Tracing } from '@tollgate/kit/telemetry';
import { Gauge, Registry } from 'prom-client';
import packageJson from '../package.json' with { type: 'json' };
import { telemetrySettings } from './config/server.ts';
import type { Settings } from './config/settings.ts';

export type TelemetrySettings = Pick<
  Settings,
  | 'tracingEnabled'
  | 'otlpProtocol'
  | 'otelServiceName'
  | 'metricsEnabled'
  | 'metricsExporter'
  | 'otelExporterPullHost'
  | 'otelExporterPullPort'
  | 'debug'
>;

/** Traces and metrics of the service. */
export interface Telemetry {
  readonly tracing: Tracing;
  /** Undefined if metrics are off. */
  readonly registry: Registry | undefined;
  /** Started first and stopped last. */
  readonly components: readonly LifecycleComponent[];
}

export async function startTelemetry(
  settings: TelemetrySettings,
  { logger, nowMs }: { readonly logger: Logger; readonly nowMs: () => number },
): Promise<Telemetry> {
  if (settings.debug) await logTelemetrySdk(logger);
  const common = {
    serviceName: settings.otelServiceName,
    resourceAttributes: { 'auth.version': `v${packageJson.version}` },
    protocol: toOtlpProtocol(settings.otlpProtocol),
    logger,
  };
  const tracing = await startTracing({ ...common, enabled: settings.tracingEnabled, samplingRate: 1 });
  const components: LifecycleComponent[] = [{ name: 'tracing', stop: () => tracing.shutdown() }];
  if (!settings.metricsEnabled) return { tracing, registry: undefined, components };

  const registry = new Registry();
  addProcessMetrics(registry);
  new Gauge({ name: 'gotrue_running', help: 'Whether the service runs.', registers: [registry] }).set(1);
  components.push(
    settings.metricsExporter === 'opentelemetry'
      ? new MetricsExport({ ...common, registry, nowMs })
      : withListenLog(
          new MetricsServer({
            registry,
            host: settings.otelExporterPullHost,
            port: settings.otelExporterPullPort,
            path: '/',
            otherPaths: ['/metrics'],
          }),
          logger,
        ),
  );
  return { tracing, registry, components };
}

function toOtlpProtocol(protocol: Settings['otlpProtocol']): OtlpProtocol {
  return protocol === 'http/json' ? 'http' : protocol;
}

function withListenLog(server: MetricsServer, logger: Logger): LifecycleComponent {
  return {
    name: server.name,
    stop: () => server.stop(),
    async start() {
      await nameListenSettings(server.start(), {
        host: telemetrySettings.otelExporterPullHost.env,
        port: telemetrySettings.otelExporterPullPort.env,
      });
      logger.info({ url: server.url() }, 'serving metrics');
    },
  };
}
