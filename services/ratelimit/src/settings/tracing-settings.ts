import { bool, float, oneOf, text } from '@tollgate/kit/settings';

const group = 'Tracing';

/** Spans in OTLP. Where they go is said by the standard variables OTEL_EXPORTER_OTLP_*. */
export const tracingSettings = {
  tracingEnabled: bool({
    env: 'TRACING_ENABLED',
    group,
    default: false,
    doc: 'Export spans; the standard variables OTEL_EXPORTER_OTLP_* say where to.',
  }),
  tracingExporterProtocol: oneOf(['http', 'grpc'], {
    env: 'TRACING_EXPORTER_PROTOCOL',
    group,
    default: 'http',
    synonyms: { '': 'http' },
    doc: 'Protocol of the export.',
  }),
  tracingServiceName: text({
    env: 'TRACING_SERVICE_NAME',
    group,
    default: 'RateLimit',
    doc: '`service.name`.',
  }),
  tracingServiceNamespace: text({
    env: 'TRACING_SERVICE_NAMESPACE',
    group,
    default: '',
    doc: '`service.namespace`.',
  }),
  tracingServiceInstanceId: text({
    env: 'TRACING_SERVICE_INSTANCE_ID',
    group,
    default: '',
    doc: '`service.instance.id`; empty for a random UUID.',
  }),
  tracingSamplingRate: float({
    env: 'TRACING_SAMPLING_RATE',
    group,
    default: 1,
    min: 0,
    max: 1,
    clamp: true,
    doc: 'Part of the traces that is kept, where the caller has not decided.',
  }),
};
