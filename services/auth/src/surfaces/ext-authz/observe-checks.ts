import type { Logger } from '@tollgate/kit/logger';
import { Counter, Histogram, type Registry } from 'prom-client';
import type { AuthzDecision } from '../../domain/authz/authz-decision.ts';
import type { AuthzRequest } from '../../domain/authz/authz-request.ts';
import type { AuthorizeRequest } from '../../use-cases/authz/authorize-request.ts';

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
