import type { Tracing } from '@tollgate/kit/telemetry';
import type { AuthzDecision } from '../domain/authz/authz-decision.ts';
import { judgeRoute } from '../domain/authz/judge-route.ts';
import type { RouteRule, RouteRules } from '../domain/authz/route-rules.ts';
import type { IdentityStates } from '../ports/identity-states.ts';
import type { AuthorizeRequest } from '../use-cases/authz/authorize-request.ts';

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
      span.setAttribute('tollgate.authz.outcome', outcomeOf(decision));
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

function outcomeOf(decision: AuthzDecision): string {
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
