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

/** The settings that say what leaves, and how. */
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
  /** Absent when metrics are off: nothing is counted then. */
  readonly registry: Registry | undefined;
  /** To be started before everything that is measured, and stopped after it. */
  readonly components: readonly LifecycleComponent[];
}

/** Puts together what the settings ask for. */
export async function startTelemetry(
  settings: TelemetrySettings,
  { logger, nowMs }: { readonly logger: Logger; readonly nowMs: () => number },
): Promise<Telemetry> {
  if (settings.debug) await logTelemetrySdk(logger);
  const about = {
    serviceName: settings.otelServiceName,
    resourceAttributes: { 'auth.version': `v${packageJson.version}` },
    protocol: protocolOf(settings.otlpProtocol),
    logger,
  };
  const tracing = await startTracing({ ...about, enabled: settings.tracingEnabled, samplingRate: 1 });
  const components: LifecycleComponent[] = [{ name: 'tracing', stop: () => tracing.shutdown() }];
  if (!settings.metricsEnabled) return { tracing, registry: undefined, components };

  const registry = new Registry();
  addProcessMetrics(registry);
  new Gauge({ name: 'gotrue_running', help: 'Whether the service runs.', registers: [registry] }).set(1);
  components.push(
    settings.metricsExporter === 'opentelemetry'
      ? new MetricsExport({ ...about, registry, nowMs })
      : announced(
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

/** The variable names JSON; the exporter of our kit is called after HTTP. */
function protocolOf(protocol: Settings['otlpProtocol']): OtlpProtocol {
  return protocol === 'http/json' ? 'http' : protocol;
}

function announced(server: MetricsServer, logger: Logger): LifecycleComponent {
  return {
    name: server.name,
    stop: () => server.stop(),
    async start() {
      await nameListenSettings(server.start(), {
        host: telemetrySettings.otelExporterPullHost.env,
        port: telemetrySettings.otelExporterPullPort.env,
      });
      logger.info({ url: server.url() }, 'metrics can be pulled');
    },
  };
}
