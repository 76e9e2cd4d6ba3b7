import { SpanKind } from '@opentelemetry/api';
import type { UnaryHandler } from '@tollgate/grpc-server/call';
import type { Tracing } from '@tollgate/kit/telemetry';
import { traceCarrier } from '@tollgate/kit/trace-carrier';
import { checkPath } from './grpc-check.ts';
import type { HttpCheck } from './http-check.ts';

/** Gives every call of Check a span, part of the trace that Envoy has begun. Without tracing it is the handler that was given. */
export function traceGrpcCheck(handler: UnaryHandler, { enabled, extract, inSpan }: Tracing): UnaryHandler {
  if (!enabled) return handler;
  return (bytes, context) => {
    const options = { kind: SpanKind.SERVER, parent: extract(traceCarrier((name) => context.header(name))) };
    return inSpan(checkPath.slice(1), options, () => handler(bytes, context));
  };
}

/** Gives every question over HTTP a span, part of the trace that Envoy has begun. Without tracing it is the function that was given. */
export function traceHttpCheck(
  check: HttpCheck,
  { enabled, startSpan, withSpan, extract }: Tracing,
): HttpCheck {
  if (!enabled) return check;
  return (request, response) => {
    // The path is that of another request, and not for us to name spans by.
    const span = startSpan('ext_authz', { kind: SpanKind.SERVER, parent: extract(request.headers) });
    response.once('close', () => span.end());
    withSpan(span, () => check(request, response));
  };
}
