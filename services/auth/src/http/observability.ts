import type { IncomingMessage } from 'node:http';
import { type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Logger } from '@tollgate/kit/logger';
import type { Tracing } from '@tollgate/kit/telemetry';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { AuditEntry } from '../db/audit-log.ts';
import { type Api, routeParameters, routePattern } from './api.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The last entry that the request made for the audit log. */
    auditEntry: AuditEntry | undefined;
  }
}

/** Longer ones tell nobody more. */
const maxRefererChars = 200;

/** Logs each request when it has been answered: never its query, which may hold tokens, nor its headers and body. */
export function addAccessLog(api: Api, logger: Logger): void {
  const log = logger.child({ component: 'api' });
  api.decorateRequest('auditEntry', undefined);
  api.addHook('onResponse', (request, reply, done) => {
    const { auditEntry } = request;
    log.info(
      {
        method: request.method,
        path: request.url.split('?', 1)[0],
        route: request.routeOptions.url,
        remote_addr: request.ip,
        referer: shownReferer(request.headers.referer),
        request_id: request.id,
        status: reply.statusCode,
        duration: Math.round(reply.elapsedTime * 1e6),
        ...(auditEntry && { auth_audit_event: shownEvent(auditEntry) }),
      },
      'request completed',
    );
    done();
  });
}

/** The page that a request came from, without what its query or fragment may give away; undefined for none. */
function shownReferer(referer: string | undefined): string | undefined {
  const url = URL.parse(referer ?? '');
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  return `${url.origin}${url.pathname}`.slice(0, maxRefererChars);
}

/** Who did what, by ids: names and addresses are in the audit log. */
function shownEvent({
  payload: { action, log_type, actor_id, actor_via_sso },
}: AuditEntry): Readonly<Record<string, unknown>> {
  return { action, log_type, actor_id, actor_via_sso };
}

/** From a cached answer to a password hash that waits its turn. */
const bucketsSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Status, in the metrics only, of requests whose client did not wait for the answer. */
const clientGone = 499;

/** Values of the label `result`. */
const results = ['success', 'client_error', 'rate_limited', 'client_gone', 'server_error'] as const;

/** Counts requests and how long they take: by method, route and status, all of which are bounded. Without a registry, nothing. */
export function addRequestMetrics(api: Api, registry: Registry | undefined): void {
  if (registry === undefined) return;
  const registers = [registry];
  const duration = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Time from the first byte of a request to the last of its answer.',
    labelNames: ['method', 'route', 'status'],
    buckets: bucketsSeconds,
    registers,
  });
  const statusCodes = new Counter({
    name: 'http_status_codes_total',
    help: 'Answers by status and route.',
    labelNames: ['code', 'http_route'],
    registers,
  });
  // Alerts read this one: a counter by route and status would not exist until the first failure,
  // which rate() then misses.
  const responses = new Counter({
    name: 'auth_http_responses_total',
    help: 'Responses by result; `client_error` is 4xx other than 429.',
    labelNames: ['result'],
    registers,
  });
  for (const result of results) responses.inc({ result }, 0);
  duration.zero({ method: 'POST', route: '/token', status: 200 });
  const active = new Gauge({
    name: 'http_server_active_requests',
    help: 'Requests that have not been answered yet.',
    registers,
  });
  api.addHook('onRequest', (request, { raw }, done) => {
    const route = routePattern(request) ?? 'none';
    const startedMs = performance.now();
    active.inc();
    // Also when the client has gone away.
    raw.once('close', () => {
      active.dec();
      const status = raw.writableFinished ? raw.statusCode : clientGone;
      duration.observe({ method: request.method, route, status }, (performance.now() - startedMs) / 1000);
      statusCodes.inc({ code: status, http_route: route });
      responses.inc({ result: resultOf(status) });
    });
    done();
  });
}

function resultOf(status: number): (typeof results)[number] {
  if (status >= 500) return 'server_error';
  if (status === clientGone) return 'client_gone';
  if (status === 429) return 'rate_limited';
  return status >= 400 ? 'client_error' : 'success';
}

/**
 * Gives every request a span, part of the trace of its caller. Neither query nor headers are recorded: they may hold tokens.
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
    // Active for the rest of the request, so that statements become a part of it.
    tracing.withSpan(span, done);
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
    else tracing.withSpan(span, done);
  });
}
