import { bool, float, oneOf, text } from '@tollgate/kit/settings';

const group = 'Tracing';

/** Spans in OTLP. Where they go is said by the standard variables OTEL_EXPORTER_OTLP_*. */
export const tracingSettings = {
  tracingEnabled: bool({
    env: 'TRACING_ENABLED',
    group,
    default: false,
    doc: 'Export spans of changes, from the source to the limiters; the standard variables OTEL_EXPORTER_OTLP_* say where to.',
  }),
  tracingExporterProtocol: oneOf(['http', 'http/protobuf', 'grpc'], {
    env: 'TRACING_EXPORTER_PROTOCOL',
    group,
    default: 'http',
    doc: 'Protocol of the export; `http` is JSON.',
  }),
  tracingServiceName: text({
    env: 'TRACING_SERVICE_NAME',
    group,
    default: 'tollgate-xds',
    doc: '`service.name`.',
  }),
  tracingSamplingRate: float({
    env: 'TRACING_SAMPLING_RATE',
    group,
    default: 1,
    min: 0,
    max: 1,
    doc: 'Part of the traces that is kept.',
  }),
};
