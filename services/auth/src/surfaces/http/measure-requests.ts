import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Api } from './api.ts';
import { routePattern } from './route-pattern.ts';

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
