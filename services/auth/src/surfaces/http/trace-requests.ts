import type { IncomingMessage } from 'node:http';
import { type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Tracing } from '@tollgate/kit/telemetry';
import type { Api } from './api.ts';
import { routeParameters, routePattern } from './route-pattern.ts';

/**
 * Gives every request a span, part of the trace of its caller. Neither query nor headers are recorded: they may hold tokens.
 *
 * @see https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-server-span
 */
export function addTracing(api: Api, { enabled, startSpan, withSpan, extract }: Tracing): void {
  if (!enabled) return;
  const spans = new WeakMap<IncomingMessage, Span>();
  api.addHook('onRequest', (request, { raw }, done) => {
    const route = routePattern(request);
    const attributes = {
      'http.request.method': request.method,
      'url.path': request.url.split('?', 1)[0] ?? '',
      'client.address': request.ip,
      'request.id': request.id,
      ...(route !== undefined && { 'http.route': route }),
      ...Object.fromEntries(
        routeParameters(request).map(([key, value]) => [`http.route.params.${key}`, value]),
      ),
    };
    const name = route === undefined ? request.method : `${request.method} ${route}`;
    const span = startSpan(name, { kind: SpanKind.SERVER, attributes, parent: extract(request.headers) });
    raw.once('close', () => {
      if (raw.writableFinished) span.setAttribute('http.response.status_code', raw.statusCode);
      else span.setAttribute('error.type', 'client_gone');
      if (raw.writableFinished && raw.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    });
    spans.set(request.raw, span);
    // Active for the rest of the request, so that statements become a part of it.
    withSpan(span, done);
  });
  api.addHook('onSend', (request, reply, _payload, done) => {
    const errorCode = reply.getHeader('x-sb-error-code');
    if (typeof errorCode === 'string')
      spans.get(request.raw)?.setAttribute('tollgate.auth.error_code', errorCode);
    done();
  });
  // Once more: a body that has been read continues the request from an event of its connection.
  api.addHook('preValidation', (request, _reply, done) => {
    const span = spans.get(request.raw);
    if (span === undefined) done();
    else withSpan(span, done);
  });
}
