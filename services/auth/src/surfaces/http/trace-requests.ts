import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Tracing } from '@tollgate/kit/telemetry';
import type { Api } from './api.ts';
import { routeParameters, routePattern } from './route-pattern.ts';

/**
 * Gives every request a span, part of the trace of its caller. Neither query nor headers are recorded: they may hold tokens.
 *
 * @see https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-server-span
 */
export function addTracing(api: Api, { enabled, tracer, extract }: Tracing): void {
  if (!enabled) return;
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
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, extract(request.headers));
    raw.once('close', () => {
      if (raw.writableFinished) span.setAttribute('http.response.status_code', raw.statusCode);
      else span.setAttribute('error.type', 'client_gone');
      if (raw.writableFinished && raw.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    });
    done();
  });
}
