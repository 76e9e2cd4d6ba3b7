/**
 * Traces and metrics through an OpenTelemetry tracer and meter that are handed in; no dependency.
 *
 * @module
 */
export type { Attributes } from './otel/bounded-attributes.ts';
export {
  type InstrumentOptions,
  type MeterLike,
  type OtelHooksOptions,
  otelHooks,
  type SpanLike,
  type TracerLike,
} from './otel/otel-hooks.ts';
