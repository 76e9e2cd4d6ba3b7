import type { Span } from '@opentelemetry/api';
import type { Logger } from '@tollgate/kit/logger';
import type { Tracing } from '@tollgate/kit/telemetry';
import type { PolicyTable } from '@tollgate/policies/compile/policy-table';
import { matchRequest } from '@tollgate/policies/decide/match-request';
import type { RouteRule, RouteRules } from '@tollgate/policies/routes-file/route-rules';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { CredentialCacheStats } from '../db/credential-cache.ts';
import type { Authorizer } from './decision.ts';
import type { IdentityCacheStats } from './identity-cache.ts';
import type { AuthzRequest } from './request.ts';
import type { AuthzDecision, RateLimitResult } from './result.ts';

interface ObserveOptions {
  /** Gets a line per check at level debug. */
  readonly logger: Logger;
  /** Undefined if metrics are off. */
  readonly registry: Registry | undefined;
  readonly tracing: Tracing;
  readonly rules: { readonly current: RouteRules };
  readonly policies: { readonly current: PolicyTable | undefined } | undefined;
}

/**
 * Records decisions in metrics, the debug log and the active span. Without any of them, returns
 * `authorizer`.
 */
export function observeChecks(
  authorizer: Pick<Authorizer, 'authorize'>,
  { logger, registry, tracing, rules, policies }: ObserveOptions,
): Pick<Authorizer, 'authorize'> {
  const metrics = registry && createCheckMetrics(registry);
  const log = logger.isLevelEnabled('debug') ? logger.child({ component: 'ext_authz' }) : undefined;
  if (metrics === undefined && log === undefined && !tracing.enabled) return authorizer;
  return {
    authorize(request, timeoutMs, readProof) {
      const startedMs = performance.now();
      const span = tracing.activeSpan();
      const recording = span?.isRecording() === true ? span : undefined;
      recording?.setAttribute(
        'tollgate.authz.route_rule',
        describeRule(rules.current, request, policies?.current),
      );
      const record = (decision: AuthzDecision): AuthzDecision => {
        const seconds = (performance.now() - startedMs) / 1000;
        metrics?.record(decision, seconds);
        if (log) logCheck(log, request, { decision, seconds });
        if (recording) setDecision(recording, decision);
        return decision;
      };
      const decision = authorizer.authorize(request, timeoutMs, readProof);
      return decision instanceof Promise ? decision.then(record) : record(decision);
    },
  };
}

/**
 * Decisions without I/O are the fastest; a wait for the database is the slowest. All bounds of the
 * limiter are among them, so that the console can add both.
 */
const bucketsSeconds = [
  0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
  2.5, 5, 10,
];

function createCheckMetrics(registry: Registry) {
  const registers = [registry];
  const checks = new Counter({
    name: 'auth_ext_authz_checks_total',
    help: 'Authorization checks by outcome, and allowed ones by kind of caller; `none` on public routes. `unavailable` are those denied because of a failure.',
    labelNames: ['outcome', 'kind'],
    registers,
  });
  // Looked up once: most checks take a few microseconds.
  const allowedOf = {
    user: checks.labels({ outcome: 'allowed', kind: 'user' }),
    api_key: checks.labels({ outcome: 'allowed', kind: 'api_key' }),
    client: checks.labels({ outcome: 'allowed', kind: 'client' }),
    none: checks.labels({ outcome: 'allowed', kind: 'none' }),
  };
  const denied = checks.labels({ outcome: 'denied' });
  const unavailable = checks.labels({ outcome: 'unavailable' });
  for (const series of [...Object.values(allowedOf), denied, unavailable]) series.inc(0);
  const denials = new Counter({
    name: 'auth_ext_authz_denials_total',
    help: 'Denied requests by the error code that the client received.',
    labelNames: ['error_code'],
    registers,
  });
  const duration = new Histogram({
    name: 'auth_ext_authz_check_duration_seconds',
    help: 'Duration of authorization checks.',
    buckets: bucketsSeconds,
    registers,
  });
  return {
    record(decision: AuthzDecision, seconds: number): void {
      if (decision.allowed) allowedOf[decision.identity?.kind ?? 'none'].inc();
      else (getOutcome(decision) === 'unavailable' ? unavailable : denied).inc();
      if (!decision.allowed) denials.inc({ error_code: decision.errorCode });
      duration.observe(seconds);
    },
  };
}

/** Metrics of the calls to the rate limit service. */
export class RateLimitMetrics {
  readonly #checks: Counter<'result'>;
  readonly #duration: Histogram;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#checks = new Counter({
      name: 'auth_ext_authz_rate_limit_checks_total',
      help: 'Checks by the result of the rate limit. `error` if the service did not answer.',
      labelNames: ['result'],
      registers,
    });
    for (const result of ['ok', 'over_limit', 'error']) this.#checks.inc({ result }, 0);
    this.#duration = new Histogram({
      name: 'auth_ext_authz_rate_limit_duration_seconds',
      help: 'Duration of calls to the rate limit service.',
      buckets: bucketsSeconds,
      registers,
    });
  }

  record(result: RateLimitResult['code'], seconds: number): void {
    this.#checks.inc({ result });
    this.#duration.observe(seconds);
  }
}

function getOutcome(decision: AuthzDecision): string {
  if (decision.allowed) return 'allowed';
  return decision.httpStatus === 503 ? 'unavailable' : 'denied';
}

function logCheck(
  logger: Logger,
  { method, path }: AuthzRequest,
  { decision, seconds }: { readonly decision: AuthzDecision; readonly seconds: number },
): void {
  logger.debug(
    {
      method,
      // The query may hold tokens.
      path: path.split('?', 1)[0],
      allowed: decision.allowed,
      ...(decision.rateLimit !== undefined && { rate_limit: decision.rateLimit }),
      ...(decision.allowed ? { user_id: decision.identity?.userId } : { code: decision.errorCode }),
      duration: Math.round(seconds * 1e9),
    },
    'request checked',
  );
}

function setDecision(span: Span, decision: AuthzDecision): void {
  span.setAttribute('tollgate.authz.outcome', getOutcome(decision));
  if (decision.rateLimit !== undefined) span.setAttribute('tollgate.authz.rate_limit', decision.rateLimit);
  if (decision.allowed) return;
  span.setAttribute('tollgate.authz.error_code', decision.errorCode);
  span.setAttribute('tollgate.authz.status_code', decision.httpStatus);
}

/** The rule as written in the file, or the policy with the paths of its rule. */
function describeRule(rules: RouteRules, request: AuthzRequest, policies: PolicyTable | undefined): string {
  const match = matchRequest(rules, request, policies);
  if (!match.ok) return `(${match.problem.replaceAll('_', ' ')})`;
  const [{ policy, rule }] = match.matched;
  if (policy.name !== undefined) return `${policy.name} ${rule.label ?? '(default)'}`;
  const route = rules.routes.find((candidate) => candidate === rule);
  return route === undefined ? '(default)' : toText(route);
}

function toText({ methods, path }: RouteRule): string {
  return methods === undefined ? path.source : `${[...methods].join(',')} ${path.source}`;
}

/** Exports the statistics of the identity cache and the state of its listener. */
export function exportIdentityMetrics(
  cache: { stats(): IdentityCacheStats },
  listener: { isUp(): boolean },
  registry: Registry,
): void {
  const registers = [registry];
  new Counter({
    name: 'auth_ext_authz_identity_finds_total',
    help: 'Lookups of the state of users and clients: `known` in the cache, `read` from the database, `joined` a read in flight',
    labelNames: ['result'],
    registers,
    collect() {
      const { hits, misses, joins } = cache.stats();
      this.reset();
      this.inc({ result: 'known' }, hits);
      this.inc({ result: 'read' }, misses);
      this.inc({ result: 'joined' }, joins);
    },
  });
  new Counter({
    name: 'auth_ext_authz_identity_invalidations_total',
    help: 'Invalidations of cached user state: of single users, or of all users',
    labelNames: ['scope'],
    registers,
    collect() {
      const { invalidations, invalidationsOfAll } = cache.stats();
      this.reset();
      this.inc({ scope: 'user' }, invalidations);
      this.inc({ scope: 'all' }, invalidationsOfAll);
    },
  });
  new Gauge({
    name: 'auth_ext_authz_identity_entries',
    help: 'Cached states of users and clients',
    registers,
    collect() {
      this.set(cache.stats().entries);
    },
  });
  new Gauge({
    name: 'auth_ext_authz_identity_listener_up',
    help: 'Whether changes of users are received (1), or take effect when cached states expire (0)',
    registers,
    collect() {
      this.set(listener.isUp() ? 1 : 0);
    },
  });
}

/** Metrics of API keys. */
export class KeyMetrics {
  readonly wrong: Counter<'result'>;

  constructor(cache: { stats(): CredentialCacheStats }, registry: Registry) {
    const registers = [registry];
    this.wrong = new Counter({
      name: 'auth_ext_authz_wrong_api_keys_total',
      help: 'Requests with a key that does not exist: `rejected` with 401; with 429 (`limited`) after too many from the address',
      labelNames: ['result'],
      registers,
    });
    for (const result of ['rejected', 'limited']) this.wrong.inc({ result }, 0);
    new Counter({
      name: 'auth_ext_authz_api_key_finds_total',
      help: 'Lookups of API keys: `known` or `unknown` in the cache, `read` from the database, `joined` a read in flight',
      labelNames: ['result'],
      registers,
      collect() {
        const { hits, unknownHits, misses, joins } = cache.stats();
        this.reset();
        this.inc({ result: 'known' }, hits);
        this.inc({ result: 'unknown' }, unknownHits);
        this.inc({ result: 'read' }, misses);
        this.inc({ result: 'joined' }, joins);
      },
    });
    new Gauge({
      name: 'auth_ext_authz_api_key_entries',
      help: 'Cached API keys: `known`, and `unknown` in the negative cache',
      labelNames: ['kind'],
      registers,
      collect() {
        const { entries, unknownEntries } = cache.stats();
        this.set({ kind: 'known' }, entries);
        this.set({ kind: 'unknown' }, unknownEntries);
      },
    });
  }
}

/** Metrics of the route rules file. */
export class RouteRulesMetrics {
  readonly #loads: Counter<'result'>;
  readonly #isCurrent: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#loads = new Counter({
      name: 'auth_ext_authz_route_rules_loads_total',
      help: 'Attempts to load the route rules, by result',
      labelNames: ['result'],
      registers,
    });
    this.#isCurrent = new Gauge({
      name: 'auth_ext_authz_route_rules_current',
      help: 'Whether the last attempt succeeded (1), or the last good rules are in force (0)',
      registers,
    });
    for (const result of ['success', 'failure']) this.#loads.inc({ result }, 0);
    // Without a file, no load can fail.
    this.#isCurrent.set(1);
  }

  recordLoad(succeeded: boolean): void {
    this.#loads.inc({ result: succeeded ? 'success' : 'failure' });
    this.#isCurrent.set(succeeded ? 1 : 0);
  }
}

/** Metrics of the client of the policy server. */
export class PolicyMetrics {
  readonly #connected: Gauge;
  readonly #rejected: Gauge;
  readonly #sets: Counter<'result'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#connected = new Gauge({
      name: 'auth_ext_authz_policy_server_connected',
      help: 'Whether the policy server is connected and has sent policies (1)',
      registers,
    });
    this.#rejected = new Gauge({
      name: 'auth_ext_authz_policies_rejected',
      help: 'Policies of the last set that this server does not understand; it uses their last valid versions, or denies',
      registers,
    });
    this.#sets = new Counter({
      name: 'auth_ext_authz_policy_sets_total',
      help: 'Sets of policies from the policy server, by result',
      labelNames: ['result'],
      registers,
    });
    for (const result of ['accepted', 'rejected']) this.#sets.inc({ result }, 0);
  }

  setConnected(connected: boolean): void {
    this.#connected.set(connected ? 1 : 0);
  }

  setRejected(policies: number): void {
    this.#rejected.set(policies);
  }

  recordSet(accepted: boolean): void {
    this.#sets.inc({ result: accepted ? 'accepted' : 'rejected' });
  }
}
