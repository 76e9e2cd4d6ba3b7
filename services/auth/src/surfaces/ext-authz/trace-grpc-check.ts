import { SpanKind } from '@opentelemetry/api';
import type { UnaryHandler } from '@tollgate/kit/grpc/unary-handler';
import type { Tracing } from '@tollgate/kit/telemetry';
import { checkPath } from './grpc-check.ts';

/** Headers that carry a trace: W3C tracecontext and baggage, B3 in both forms. */
const traceHeaders = [
  'traceparent',
  'tracestate',
  'baggage',
  'b3',
  'x-b3-traceid',
  'x-b3-spanid',
  'x-b3-parentspanid',
  'x-b3-sampled',
  'x-b3-flags',
];

/** Gives every call a span, part of the trace that Envoy has begun. Without tracing it is the handler that was given. */
export function traceGrpcCheck(handler: UnaryHandler, { enabled, extract, inSpan }: Tracing): UnaryHandler {
  if (!enabled) return handler;
  return (bytes, context) => {
    const carrier = Object.fromEntries(traceHeaders.map((name) => [name, context.header(name)]));
    const options = { kind: SpanKind.SERVER, parent: extract(carrier) };
    return inSpan(checkPath.slice(1), options, () => handler(bytes, context));
  };
}
