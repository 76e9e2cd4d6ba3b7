import { SpanKind } from '@opentelemetry/api';
import type { UnaryHandler } from '@tollgate/grpc-server/call';
import type { Logger } from '@tollgate/kit/logger';
import type { Tracing } from '@tollgate/kit/telemetry';
import { traceCarrier } from '@tollgate/kit/telemetry';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { type AuthorizeRequest, type AuthzDecision, type AuthzRequest, judgeRoute } from './decision.ts';
import { checkPath } from './grpc.ts';
import type { HttpCheck } from './http.ts';
import type { IdentityStates, IdentityStatesStats } from './identity-cache.ts';
import type { RouteRule, RouteRules } from './route-rules.ts';

/** From a decision that asks nobody to one that waits for the database. */
const bucketsSeconds = [
  0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1,
];

/** What is told of checks, and whom. */
export interface ObserveChecksDeps {
  /** Gets a line a check, at its debug level alone: at any other there would be more of them than of everything else. */
  readonly logger: Logger;
  /** Absent for no metrics. */
  readonly metrics: Registry | undefined;
}

/** Counts, times and logs decisions. Nothing is added to one where nobody listens. */
export function observeChecks(
  authorize: AuthorizeRequest,
  { logger, metrics }: ObserveChecksDeps,
): AuthorizeRequest {
  const observers = [
    ...(metrics === undefined ? [] : [countInto(metrics)]),
    ...(logger.isLevelEnabled('debug') ? [logTo(logger)] : []),
  ];
  if (observers.length === 0) return authorize;
  return (request, timeoutMs) => {
    const startedMs = performance.now();
    const note = (decision: AuthzDecision): AuthzDecision => {
      const seconds = (performance.now() - startedMs) / 1000;
      for (const observe of observers) observe(request, decision, seconds);
      return decision;
    };
    const decision = authorize(request, timeoutMs);
    return decision instanceof Promise ? decision.then(note) : note(decision);
  };
}

type Observe = (request: AuthzRequest, decision: AuthzDecision, seconds: number) => void;

function countInto(registry: Registry): Observe {
  const registers = [registry];
  const checks = new Counter({
    name: 'auth_ext_authz_checks_total',
    help: 'Requests that were decided. `unavailable` are those refused because nobody could tell.',
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of ['allowed', 'denied', 'unavailable']) checks.inc({ outcome }, 0);
  const denials = new Counter({
    name: 'auth_ext_authz_denials_total',
    help: 'Requests that were refused, by the reason that the client was told.',
    labelNames: ['error_code'],
    registers,
  });
  const duration = new Histogram({
    name: 'auth_ext_authz_check_duration_seconds',
    help: 'Time that a decision took.',
    buckets: bucketsSeconds,
    registers,
  });
  return (_request, decision, seconds) => {
    checks.inc({ outcome: outcomeOf(decision) });
    if (!decision.allowed) denials.inc({ error_code: decision.errorCode });
    duration.observe(seconds);
  };
}

function outcomeOf(decision: AuthzDecision): string {
  if (decision.allowed) return 'allowed';
  return decision.httpStatus === 503 ? 'unavailable' : 'denied';
}

function logTo(parent: Logger): Observe {
  const logger = parent.child({ component: 'ext_authz' });
  return ({ method, path }, decision, seconds) => {
    logger.debug(
      {
        method,
        // Never the query, which may hold tokens.
        path: path.split('?', 1)[0],
        allowed: decision.allowed,
        ...(decision.allowed ? { user_id: decision.identity?.userId } : { code: decision.errorCode }),
        duration: Math.round(seconds * 1e9),
      },
      'request checked',
    );
  };
}

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

/**
 * Adds to the span of a check what decided: the route rule, the outcome and the error code. Returns
 * the function itself when tracing is off.
 */
export function traceAuthorization(
  authorize: AuthorizeRequest,
  { tracing, rules }: { readonly tracing: Tracing; readonly rules: () => RouteRules },
): AuthorizeRequest {
  if (!tracing.enabled) return authorize;
  return (request, timeoutMs) => {
    const span = tracing.activeSpan();
    if (span?.isRecording() !== true) return authorize(request, timeoutMs);
    span.setAttribute('tollgate.authz.route_rule', ruleName(rules(), request.method, request.path));
    const note = (decision: AuthzDecision): AuthzDecision => {
      span.setAttribute('tollgate.authz.outcome', traceAuthorizationOutcomeOf(decision));
      if (!decision.allowed) {
        span.setAttribute('tollgate.authz.error_code', decision.errorCode);
        span.setAttribute('tollgate.authz.status_code', decision.httpStatus);
      }
      return decision;
    };
    const decision = authorize(request, timeoutMs);
    return decision instanceof Promise ? decision.then(note) : note(decision);
  };
}

/** Adds to the span of a check whether the state of the user came from the cache. */
export function traceIdentityStates(states: IdentityStates, tracing: Tracing): IdentityStates {
  if (!tracing.enabled) return states;
  return {
    ...states,
    find(userId, sessionId) {
      const found = states.find(userId, sessionId);
      tracing.activeSpan()?.setAttribute('tollgate.authz.cache_hit', !(found instanceof Promise));
      return found;
    },
  };
}

function traceAuthorizationOutcomeOf(decision: AuthzDecision): string {
  if (decision.allowed) return 'allowed';
  return decision.httpStatus === 503 ? 'unavailable' : 'denied';
}

/** The rule as its file has it; of a path with two readings none is found. */
function ruleName(rules: RouteRules, method: string, path: string): string {
  const verdict = judgeRoute(rules, method, path);
  if (!verdict.ok) return '(ambiguous path)';
  return verdict.route === undefined ? '(default)' : nameOf(verdict.route);
}

function nameOf({ methods, path }: RouteRule): string {
  return methods === undefined ? path.source : `${[...methods].join(',')} ${path.source}`;
}

/** What is measured. */
export interface MeasuredIdentityStates {
  readonly states: { stats(): IdentityStatesStats };
  readonly listener: { isUp(): boolean };
}

/** Shows how often external authorization knew a user, and whether it hears of changes. Read when asked for: a check counts in plain numbers. */
export function measureIdentityStates(
  { states, listener }: MeasuredIdentityStates,
  registry: Registry,
): void {
  const registers = [registry];
  new Counter({
    name: 'auth_ext_authz_identity_finds_total',
    help: 'Users whose state was asked for, by how it was found: known, read, or joined a read under way',
    labelNames: ['result'],
    registers,
    collect() {
      const { hits, misses, joins } = states.stats();
      this.reset();
      this.inc({ result: 'known' }, hits);
      this.inc({ result: 'read' }, misses);
      this.inc({ result: 'joined' }, joins);
    },
  });
  new Counter({
    name: 'auth_ext_authz_identity_invalidations_total',
    help: 'Changes that were heard of: of single users, or of all at once',
    labelNames: ['scope'],
    registers,
    collect() {
      const { invalidations, invalidationsOfAll } = states.stats();
      this.reset();
      this.inc({ scope: 'user' }, invalidations);
      this.inc({ scope: 'all' }, invalidationsOfAll);
    },
  });
  new Gauge({
    name: 'auth_ext_authz_identity_entries',
    help: 'States held',
    registers,
    collect() {
      this.set(states.stats().entries);
    },
  });
  new Gauge({
    name: 'auth_ext_authz_identity_listener_up',
    help: 'Whether changes of users are heard of (1), or only found by asking again in time (0)',
    registers,
    collect() {
      this.set(listener.isUp() ? 1 : 0);
    },
  });
}

/** Told of each attempt to load the rules of routes. */
export type CountRouteRulesLoad = (succeeded: boolean) => void;

/** Shows whether the rules of routes in force are those of their file. */
export function measureRouteRules(registry: Registry): CountRouteRulesLoad {
  const registers = [registry];
  const loads = new Counter({
    name: 'auth_ext_authz_route_rules_loads_total',
    help: 'Attempts to load the rules of routes, by result',
    labelNames: ['result'],
    registers,
  });
  const isCurrent = new Gauge({
    name: 'auth_ext_authz_route_rules_current',
    help: 'Whether the last attempt succeeded (1), or older rules are in force because the file is bad (0)',
    registers,
  });
  for (const result of ['success', 'failure']) loads.inc({ result }, 0);
  // Without a file there is none that could be bad.
  isCurrent.set(1);
  return (succeeded) => {
    loads.inc({ result: succeeded ? 'success' : 'failure' });
    isCurrent.set(succeeded ? 1 : 0);
  };
}
