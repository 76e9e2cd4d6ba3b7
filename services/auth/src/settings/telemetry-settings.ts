import { bool, oneOf, port, type Setting, type SettingOptions, text } from '@tollgate/kit/settings';
import { bare, bareNames, svc } from './variable-names.ts';

const group = 'Telemetry';

/** A switch whose variable other programs use for other values, as `DEBUG=express:*`. */
function sharedSwitch(options: SettingOptions<boolean>): Setting<boolean> {
  const base = bool(options);
  return Object.freeze({ ...base, parse: (value) => base.parse(value) ?? false });
}

/** Traces and metrics. Where traces go is said by the standard variables OTEL_EXPORTER_OTLP_*. */
export const telemetrySettings = {
  tracingEnabled: bool({ ...svc('TRACING_ENABLED'), group, default: false, doc: 'Export spans in OTLP.' }),
  tracingExporter: oneOf(['opentelemetry'], {
    ...svc('TRACING_EXPORTER'),
    group,
    default: 'opentelemetry',
    doc: 'How.',
  }),
  otlpProtocol: oneOf(['http/protobuf', 'http/json', 'grpc'], {
    ...bare('OTEL_EXPORTER_OTLP_PROTOCOL'),
    group,
    default: 'http/protobuf',
    doc: 'Protocol of OTLP; the other OTEL_EXPORTER_OTLP_* variables are read by the exporter itself.',
  }),
  otelServiceName: text({ ...bare('OTEL_SERVICE_NAME'), group, default: 'auth', doc: '`service.name`.' }),
  metricsEnabled: bool({ ...svc('METRICS_ENABLED'), group, default: false, doc: 'Export metrics.' }),
  metricsExporter: oneOf(['opentelemetry', 'pull', 'prometheus'], {
    ...svc('METRICS_EXPORTER'),
    group,
    default: 'opentelemetry',
    doc: '`opentelemetry` sends OTLP; `pull` (or `prometheus`) waits for scrapes.',
  }),
  otelExporterPullHost: text({
    ...bareNames('OTEL_EXPORTER_PULL_HOST', 'OTEL_EXPORTER_PROMETHEUS_HOST'),
    group,
    default: '0.0.0.0',
    doc: 'Address that scrapers ask. Development mode listens on loopback whatever is set here.',
  }),
  otelExporterPullPort: port({
    ...bareNames('OTEL_EXPORTER_PULL_PORT', 'OTEL_EXPORTER_PROMETHEUS_PORT'),
    group,
    default: 9100,
    doc: 'TCP port that scrapers ask, at `/` or `/metrics`.',
  }),
  debug: sharedSwitch({
    ...bare('DEBUG'),
    group,
    default: false,
    doc: 'More insight from the telemetry SDK. Other programs use the variable as well: what is no boolean is false.',
  }),
};
