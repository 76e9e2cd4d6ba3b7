import type { IncomingMessage } from 'node:http';
import { type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Tracing } from '@tollgate/kit/telemetry';
import type { FastifyRequest } from 'fastify';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { errors } from '../errors.ts';
import type { Api } from './api.ts';
import { errorCodeHeader } from './error-response.ts';

/** The range is from a cached response to a password hash that waits in the queue. */
const bucketsSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** In metrics only: the client closed the connection before the response. */
const clientGone = 499;

/** Values of the label `result`. */
const results = ['success', 'client_error', 'rate_limited', 'client_gone', 'server_error'] as const;

/** Measures requests by method, route and status. */
export function addRequestMetrics(api: Api, registry: Registry | undefined): void {
  if (registry === undefined) return;
  const registers = [registry];
  const duration = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Time from the first byte of the request to the last byte of the response.',
    labelNames: ['method', 'route', 'status'],
    buckets: bucketsSeconds,
    registers,
  });
  const statusCodes = new Counter({
    name: 'http_status_codes_total',
    help: 'Responses by status and route.',
    labelNames: ['code', 'http_route'],
    registers,
  });
  // For alerts: a counter by route and status would not exist before the first failure, which
  // rate() would miss.
  const responses = new Counter({
    name: 'auth_http_responses_total',
    help: 'Responses by result; `client_error` is 4xx other than 429.',
    labelNames: ['result'],
    registers,
  });
  for (const result of results) responses.inc({ result }, 0);
  const errorCodes = new Counter({
    name: 'global_auth_errors_total',
    help: 'Responses with an error code of the API, by code.',
    labelNames: ['type', 'error'],
    registers,
  });
  for (const error of Object.keys(errors)) errorCodes.inc({ type: 'api', error }, 0);
  duration.zero({ method: 'POST', route: '/token', status: 200 });
  const active = new Gauge({
    name: 'http_server_active_requests',
    help: 'Requests without a response yet.',
    registers,
  });
  api.addHook('onRequest', (request, reply, done) => {
    const { raw } = reply;
    const route = routePattern(request) ?? 'none';
    const startedMs = performance.now();
    active.inc();
    // Also emitted if the client closes the connection.
    raw.once('close', () => {
      active.dec();
      const status = raw.writableFinished ? raw.statusCode : clientGone;
      duration.observe({ method: request.method, route, status }, (performance.now() - startedMs) / 1000);
      statusCodes.inc({ code: status, http_route: route });
      responses.inc({ result: getResult(status) });
      const error = reply.getHeader(errorCodeHeader);
      if (typeof error === 'string') errorCodes.inc({ type: 'api', error });
    });
    done();
  });
}

function getResult(status: number): (typeof results)[number] {
  if (status >= 500) return 'server_error';
  if (status === clientGone) return 'client_gone';
  if (status === 429) return 'rate_limited';
  return status >= 400 ? 'client_error' : 'success';
}

/**
 * Runs each request in a span of the caller's trace. Queries and headers are not recorded: they may
 * hold tokens.
 *
 * @see https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-server-span
 */
export function addTracing(api: Api, tracing: Tracing): void {
  if (!tracing.enabled) return;
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
    const span = tracing.startSpan(name, {
      kind: SpanKind.SERVER,
      attributes,
      parent: tracing.extract(request.headers),
    });
    raw.once('close', () => {
      if (raw.writableFinished) span.setAttribute('http.response.status_code', raw.statusCode);
      else span.setAttribute('error.type', 'client_gone');
      if (raw.writableFinished && raw.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    });
    spans.set(request.raw, span);
    // The parent of the database spans.
    tracing.withSpan(span, done);
  });
  api.addHook('onSend', (request, reply, _payload, done) => {
    const errorCode = reply.getHeader(errorCodeHeader);
    if (typeof errorCode === 'string')
      spans.get(request.raw)?.setAttribute('tollgate.auth.error_code', errorCode);
    done();
  });
  // Again, because a request with a body continues in an event of its connection.
  api.addHook('preValidation', (request, _reply, done) => {
    const span = spans.get(request.raw);
    if (span === undefined) done();
    else tracing.withSpan(span, done);
  });
}

/**
 * The route in the notation of OpenTelemetry and OpenAPI, `/admin/users/{user_id}`. Undefined: no
 * route matched.
 */
function routePattern(request: Pick<FastifyRequest, 'routeOptions'>): string | undefined {
  const { url } = request.routeOptions;
  return url === undefined || url === '*' ? undefined : url.replaceAll(/:(\w+)/g, '{$1}');
}

/** Names and values of the path parameters. */
function routeParameters(request: Pick<FastifyRequest, 'params' | 'routeOptions'>): [string, string][] {
  if (routePattern(request) === undefined) return [];
  // Parsed boundary: the router returns an object of strings.
  return Object.entries((request.params ?? {}) as Readonly<Record<string, string>>);
}
