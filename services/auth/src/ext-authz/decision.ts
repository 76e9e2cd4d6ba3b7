import { FailureLog, type Logger } from '@tollgate/kit/logger';
import type { AuthenticatedAccess } from '@tollgate/policies/compile/access';
import { hasBrowser } from '@tollgate/policies/compile/browser';
import type { PolicyTable } from '@tollgate/policies/compile/policy-table';
import { findFixedReason, findUnmetCondition } from '@tollgate/policies/decide/access';
import type { CallerIdentity } from '@tollgate/policies/decide/caller';
import {
  type FailedMatch,
  type MatchedPolicy,
  matchRequest,
  type RequestMatch,
} from '@tollgate/policies/decide/match-request';
import type { RouteRules } from '@tollgate/policies/routes-file/route-rules';
import type { DpopProofs } from '../dpop/proofs.ts';
import { errors } from '../errors.ts';
import { isNavigation } from './browser-request.ts';
import { type Browsers, stripCookies } from './browsers.ts';
import type { Caller } from './caller.ts';
import {
  forbidden,
  forDpop,
  insufficientAssurance,
  insufficientScope,
  invalidToken,
  overRequestLimit,
  refuse,
  unavailable,
} from './denials.ts';
import { type AuthzContext, CallerIdentifier } from './identity.ts';
import { identityHeaders } from './identity-headers.ts';
import { needsProof, ProofChecker, type ReadProof, usesDpop } from './proof.ts';
import { joinResults, type LimitedCheck, type RateLimiter } from './rate-limiter.ts';
import type { AuthzRequest } from './request.ts';
import { challengeWithResource } from './resource-metadata.ts';
import type { AuthzAllowed, AuthzDecision, AuthzDenied, RateLimitResult } from './result.ts';

export interface AuthorizerContext extends AuthzContext {
  /** The rules in force, read for each request. */
  readonly rules: { readonly current: RouteRules };
  /** Undefined: no policies. Without a current one, none has arrived yet, and checks are denied. */
  readonly policies:
    | { readonly current: PolicyTable | undefined; see(name: string | undefined): void }
    | undefined;
  /** Undefined: no limits. */
  readonly rateLimiter: Pick<RateLimiter, 'check'> | undefined;
  readonly proofs: Pick<DpopProofs, 'check'>;
  /** Undefined: browsers cannot sign in. */
  readonly browsers: Pick<Browsers, 'answer' | 'begin'> | undefined;
}

/** A request whose policies are known, and what its decision depends on. */
interface Check {
  readonly request: AuthzRequest;
  readonly readProof: ReadProof;
  readonly rules: RouteRules;
  readonly match: Extract<RequestMatch, { readonly ok: true }>;
  readonly browsers: Pick<Browsers, 'begin'> | undefined;
  readonly startedMs: number;
  readonly timeoutMs: number | undefined;
}

/**
 * Decides on requests: path, policy or route, token, state of user and session, requirements, and
 * then rate limits, so that denied requests do not count.
 */
export class Authorizer {
  readonly #context: AuthorizerContext;
  readonly #identifier: CallerIdentifier;
  readonly #proofs: ProofChecker;
  readonly #unknownRoutes: FailureLog;

  constructor(context: AuthorizerContext) {
    this.#context = context;
    this.#unknownRoutes = new FailureLog({
      ...{ logger: context.logger, level: 'warn', message: 'route unknown, request denied' },
    });
    this.#identifier = new CallerIdentifier(context);
    this.#proofs = new ProofChecker(context);
  }

  /**
   * Returns a promise only if the database must be read, or the request has a limit. Never throws
   * or rejects: failures are denied with 503, and so is a read that takes longer than `timeoutMs`,
   * after which the proxy would treat the check as failed.
   */
  authorize(
    request: AuthzRequest,
    timeoutMs?: number,
    readProof: ReadProof = () => undefined,
  ): AuthzDecision | Promise<AuthzDecision> {
    const startedMs = performance.now();
    const { logger } = this.#context;
    try {
      // Read once: they may be reloaded during the check.
      const rules = this.#context.rules.current;
      const { policies } = this.#context;
      if (policies !== undefined && policies.current === undefined) return unavailable();
      const browsers = policies?.current?.hasBrowser === true ? this.#context.browsers : undefined;
      const answer = browsers?.answer(request);
      if (answer !== undefined)
        return answer instanceof Promise ? answer.catch((error) => fail(error, logger)) : answer;
      const match = matchRequest(rules, request, policies?.current);
      if (!match.ok) return this.#refuse(match, request);
      const { matched } = match;
      if (policies !== undefined) for (const { policy } of matched) policies.see(policy.name);
      const denial = findFixedDenial(matched);
      if (denial !== undefined) return denial;
      const isForBrowsers = browsers !== undefined && matched.some(({ rule }) => hasBrowser(rule.access));
      const caller = this.#identifier.identify(request, rules.claims, { timeoutMs, isForBrowsers });
      // One object instead of closures: each check would create them.
      const check = { request, readProof, rules, match, browsers, startedMs, timeoutMs };
      if (!(caller instanceof Promise)) return this.#proceed(caller, check);
      return caller.then((known) => this.#proceed(known, check)).catch((error) => fail(error, logger));
    } catch (error) {
      return fail(error, logger);
    }
  }

  /** Decides on a request whose caller is known. */
  #proceed(caller: Caller, check: Check): AuthzDecision | Promise<AuthzDecision> {
    const { request, readProof } = check;
    if (!needsProof(caller, request)) return this.#finish(caller, check);
    return this.#proofs
      .check(caller, { request, readProof, timeoutMs: timeLeftMs(check) })
      .then((proven) => this.#finish(proven, check))
      .catch((error) => fail(error, this.#context.logger));
  }

  #finish(caller: Caller, check: Check): AuthzDecision | Promise<AuthzDecision> {
    const { request, rules, browsers, match } = check;
    const { matched } = match;
    const decided = decide(request, { matched, added: rules.addedAttributes }, caller);
    const decision = browsers === undefined ? decided : forBrowser(decided, caller, { ...check, browsers });
    if (!decision.allowed) return usesDpop(request) ? forDpop(decision) : decision;
    if (matched.every(({ rule }) => rule.limits.length === 0)) return decision;
    return this.#limit(decision, matched, { request, timeLeftMs: timeLeftMs(check) });
  }

  #refuse(match: FailedMatch, { route }: AuthzRequest): AuthzDenied {
    if (match.problem === 'unknown_route') this.#unknownRoutes.log(new Error(match.reason), { route });
    return refuse(match);
  }

  /** The limits of each policy are counted in its own domain. */
  #limit(
    decision: AuthzAllowed,
    matched: readonly MatchedPolicy[],
    options: Pick<LimitedCheck, 'request' | 'timeLeftMs'>,
  ): AuthzDecision | Promise<AuthzDecision> {
    const { rateLimiter, logger } = this.#context;
    const { identity } = decision;
    const checks = matched.flatMap(({ policy: { limitDomain: domain }, rule: { limits, label } }) => {
      if (limits.length === 0) return [];
      return rateLimiter?.check({ ...options, identity, domain, limits, rulePath: label }) ?? [];
    });
    const [first, second] = checks;
    if (first === undefined) return decision;
    const result = second === undefined ? first : Promise.all(checks).then(joinResults);
    return result.then((known) => applyLimit(decision, known)).catch((error) => fail(error, logger));
  }
}

function timeLeftMs({ startedMs, timeoutMs = Number.POSITIVE_INFINITY }: Check): number {
  return timeoutMs - (performance.now() - startedMs);
}

/**
 * Sends a browser without a session, or without a second factor, to the page that changes it, and
 * keeps cookies from upstreams.
 */
function forBrowser(
  decision: AuthzDecision,
  caller: Caller,
  { browsers, request, match }: Check & { readonly browsers: Pick<Browsers, 'begin'> },
): AuthzDecision {
  if (decision.allowed) return { ...decision, headers: stripCookies(decision.headers, request.headers) };
  if (!isNavigation(request)) return decision;
  const { matched, hits } = match;
  if (!caller.ok) return (caller.canSignIn === true && browsers.begin(request, hits)) || decision;
  const canStepUp =
    decision.errorCode === 'insufficient_aal' && isByCookie(caller, request) && !matched.some(requiresMore);
  return (canStepUp && browsers.begin(request, hits, 'aal2')) || decision;
}

/** Users without a token have a cookie. */
function isByCookie({ identity }: Extract<Caller, { ok: true }>, { authorization }: AuthzRequest): boolean {
  return identity.kind === 'user' && authorization.length === 0;
}

/** The pages verify a second factor, which is `aal2`. */
function requiresMore({ rule: { access } }: MatchedPolicy): boolean {
  return access.type === 'Authenticated' && access.assurance > 'aal2';
}

/** A denial that does not depend on the caller. */
export function findFixedDenial(matched: readonly MatchedPolicy[]): AuthzDenied | undefined {
  const reason = findFixedReason(matched);
  if (reason === undefined) return undefined;
  return reason === 'route_denied' ? forbidden(reason) : unavailable(reason);
}

/** Adds the result of the rate limit to the decision, or denies the request. */
function applyLimit(decision: AuthzAllowed, result: RateLimitResult): AuthzDecision {
  const { identity } = decision;
  const { code: rateLimit } = result;
  if (result.code === 'error') {
    if (result.allowed) return { ...decision, rateLimit };
    return { ...unavailable('rate_limit_unavailable'), rateLimit, identity };
  }
  if (rateLimit === 'ok') return { ...decision, rateLimit, responseHeaders: result.headers };
  return { ...overRequestLimit(result.headers), rateLimit, identity };
}

interface DecisionRules {
  /** None is for no request, or invalid. */
  readonly matched: readonly MatchedPolicy[];
  /** Attributes that the routes file adds. */
  readonly added: readonly string[];
}

export function decide(
  request: AuthzRequest,
  { matched, added }: DecisionRules,
  caller: Caller,
): AuthzDecision {
  const { headerNames } = request;
  if (!caller.ok) {
    // Public routes treat callers with an invalid token as unauthenticated.
    if (matched.some(({ rule }) => rule.access.type !== 'Public'))
      return challengeWithResource(caller.denial, matched);
    const { credentials } = caller;
    const headers = identityHeaders(undefined, headerNames, { added, credentials });
    return { allowed: true, identity: undefined, headers };
  }
  const { identity } = caller;
  for (const { rule } of matched) {
    const denial = rule.access.type === 'Authenticated' ? findDenial(rule.access, identity) : undefined;
    if (denial !== undefined) return challengeWithResource(denial, matched);
  }
  return { allowed: true, identity, headers: caller.headers(headerNames, added) };
}

function findDenial(access: AuthenticatedAccess, identity: CallerIdentity): AuthzDenied | undefined {
  const unmet = findUnmetCondition(access, identity);
  if (unmet === undefined) return undefined;
  if (unmet === 'bad_jwt') return invalidToken('bad_jwt', otherAudience);
  if (unmet === 'insufficient_scope') return insufficientScope(access.scopes ?? []);
  return unmet === 'insufficient_aal' ? insufficientAssurance(access.assurance) : forbidden(unmet);
}

/** Fails closed. */
function fail(error: unknown, logger: Pick<Logger, 'error'>): AuthzDenied {
  logger.error({ err: error }, 'authorization failed, request denied');
  return unavailable();
}

const otherAudience = `${errors.bad_jwt.definition.message}, aud is not an audience of this route`;
