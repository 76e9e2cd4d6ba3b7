import { FailureLog, type Logger } from '@tollgate/kit/logger';
import type { AuthenticatedAccess } from '@tollgate/policies/compile/access';
import type { PolicyTable, RoutedRequest } from '@tollgate/policies/compile/policy-table';
import { errors } from '../errors.ts';
import type { AssuranceLevel } from '../sessions/store.ts';
import type { CallerIdentity } from './caller.ts';
import { type AuthzContext, type Caller, CallerIdentifier } from './identity.ts';
import { type HeaderChanges, identityHeaders } from './identity-headers.ts';
import { type FailedMatch, type MatchedPolicy, matchRequest } from './match-request.ts';
import { joinResults, type LimitedCheck, type RateLimiter, type RateLimitResult } from './rate-limiter.ts';
import { challengeWithResource } from './resource-metadata.ts';
import type { RouteRules } from './route-rules.ts';

/** The parts of a request that a decision depends on. The path is not decoded or normalized. */
export interface AuthzRequest extends RoutedRequest {
  /** Values of all `authorization` headers in order; values joined by a proxy are one. */
  readonly authorization: readonly string[];
  /**
   * IP address of the client or the proxy that is connected to the gateway. Empty if only
   * `X-Forwarded-For` has it.
   */
  readonly sourceAddress: string;
  /** Values of all `x-forwarded-for` headers in order. */
  readonly forwardedFor: readonly string[];
  /** Names of all headers, in lower case. */
  readonly headerNames: readonly string[];
}

export type AuthzDecision = AuthzAllowed | AuthzDenied;

export interface AuthzAllowed {
  readonly allowed: true;
  /** Undefined on a public route without a valid token. */
  readonly identity: CallerIdentity | undefined;
  readonly headers: HeaderChanges;
  /** Undefined if no limit applies. */
  readonly rateLimit?: RateLimitResult['code'];
  /** The response to the client has them, such as `ratelimit-remaining`. */
  readonly responseHeaders?: Readonly<Record<string, string>>;
}

/** The response to the client, with the JSON body `{ code, error_code, msg }`. */
export interface AuthzDenied {
  readonly allowed: false;
  /** 400 ambiguous path, 401 no valid token, 403 not permitted, 429 over limit, 503 unavailable. */
  readonly httpStatus: 400 | 401 | 403 | 429 | 503;
  readonly errorCode: string;
  readonly message: string;
  /**
   * In addition to `content-type`: `www-authenticate` (RFC 6750 §3, RFC 9470), `retry-after` with
   * 429 and 503, `ratelimit-…` with 429.
   */
  readonly headers: Readonly<Record<string, string>>;
  /** Set if a limit applied. */
  readonly rateLimit?: RateLimitResult['code'];
  /** Set with `rateLimit`, unless the caller has no identity. */
  readonly identity?: CallerIdentity | undefined;
}

export interface AuthorizerContext extends AuthzContext {
  /** The rules in force, read for each request. */
  readonly rules: { readonly current: RouteRules };
  /** Undefined: no policies. Without a current one, none has arrived yet, and checks are denied. */
  readonly policies:
    | { readonly current: PolicyTable | undefined; see(name: string | undefined): void }
    | undefined;
  /** Undefined: no limits. */
  readonly rateLimiter: Pick<RateLimiter, 'check'> | undefined;
}

/**
 * Decides on requests: path, policy or route, token, state of user and session, requirements, and
 * then rate limits, so that denied requests do not count.
 */
export class Authorizer {
  readonly #context: AuthorizerContext;
  readonly #identifier: CallerIdentifier;
  readonly #unknownRoutes: FailureLog;

  constructor(context: AuthorizerContext) {
    this.#context = context;
    this.#unknownRoutes = new FailureLog({
      ...{ logger: context.logger, level: 'warn', message: 'route unknown, request denied' },
    });
    this.#identifier = new CallerIdentifier(context);
  }

  /**
   * Returns a promise only if the database must be read, or the request has a limit. Never throws
   * or rejects: failures are denied with 503, and so is a read that takes longer than `timeoutMs`,
   * after which the proxy would treat the check as failed.
   */
  authorize(request: AuthzRequest, timeoutMs?: number): AuthzDecision | Promise<AuthzDecision> {
    const startedMs = performance.now();
    const { logger } = this.#context;
    try {
      // Read once: they may be reloaded during the check.
      const rules = this.#context.rules.current;
      const { policies } = this.#context;
      if (policies !== undefined && policies.current === undefined) return unavailable();
      const match = matchRequest(rules, request, policies?.current);
      if (!match.ok) return this.#refuse(match, request);
      const { matched } = match;
      if (policies !== undefined) for (const { policy } of matched) policies.see(policy.name);
      const denial = findFixedDenial(matched);
      if (denial !== undefined) return denial;
      const caller = this.#identifier.identify(request, rules.claims, timeoutMs);
      const finish = (known: Caller): AuthzDecision | Promise<AuthzDecision> => {
        const decision = decide(request, { matched, added: rules.addedAttributes }, known);
        if (!decision.allowed || matched.every(({ rule }) => rule.limits.length === 0)) return decision;
        const timeLeftMs = (timeoutMs ?? Number.POSITIVE_INFINITY) - (performance.now() - startedMs);
        return this.#limit(decision, matched, { request, timeLeftMs });
      };
      if (!(caller instanceof Promise)) return finish(caller);
      return caller.then(finish).catch((error) => fail(error, logger));
    } catch (error) {
      return fail(error, logger);
    }
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

/** A denial that does not depend on the caller. */
export function findFixedDenial(matched: readonly MatchedPolicy[]): AuthzDenied | undefined {
  for (const { rule } of matched) {
    if (rule.access.type === 'Denied') return forbidden('route_denied');
    if (rule.access.type === 'Invalid') return unavailable('policy_invalid');
  }
  return undefined;
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
  const { audiences } = access;
  if (audiences !== undefined && !audiences.some((name) => identity.audiences.includes(name)))
    return invalidToken('bad_jwt', otherAudience);
  const unmet = findUnmetCondition(access, identity);
  if (unmet === undefined) return undefined;
  if (unmet === 'insufficient_scope') return insufficientScope(access.scopes ?? []);
  return unmet === 'insufficient_aal' ? insufficientAssurance(access.assurance) : forbidden(unmet);
}

type UnmetCondition =
  | Exclude<ForbiddenCode, 'route_denied' | 'user_banned'>
  | 'insufficient_aal'
  | 'insufficient_scope';

function findUnmetCondition(
  access: AuthenticatedAccess,
  identity: CallerIdentity,
): UnmetCondition | undefined {
  const { roles, assurance, anonymousUsers } = access;
  if (roles !== undefined && !roles.includes(identity.role)) return 'role_not_allowed';
  // The levels sort as text: aal1, aal2, aal3.
  if (identity.aal < assurance) return 'insufficient_aal';
  if (identity.isAnonymous && !anonymousUsers) return 'anonymous_not_allowed';
  return findUnmetOfPolicy(access, identity);
}

/** The conditions that only policies have. */
function findUnmetOfPolicy(
  { scopes, plans, credentials, issuers }: AuthenticatedAccess,
  { scope = '', plan, kind, issuer }: CallerIdentity,
): UnmetCondition | undefined {
  // API keys have no issuer.
  if (issuers !== undefined && (issuer === undefined || !issuers.includes(issuer)))
    return 'issuer_not_allowed';
  if (credentials !== undefined && !credentials.some((credential) => credentialKinds[credential] === kind))
    return 'credential_not_allowed';
  if (plans !== undefined && !plans.includes(plan)) return 'plan_not_allowed';
  if (scopes === undefined) return undefined;
  const granted = scope.split(' ');
  return scopes.every((wanted) => granted.includes(wanted)) ? undefined : 'insufficient_scope';
}

/** Kinds of callers by the credentials of a policy. */
const credentialKinds: Readonly<Record<string, string>> = {
  User: 'user',
  Client: 'client',
  ApiKey: 'api_key',
};

/** Fails closed. */
function fail(error: unknown, logger: Pick<Logger, 'error'>): AuthzDenied {
  logger.error({ err: error }, 'authorization failed, request denied');
  return unavailable();
}

const otherAudience = `${errors.bad_jwt.definition.message}, aud is not an audience of this route`;

/** Denials that another token would not change. */
type ForbiddenCode =
  | 'route_denied'
  | 'role_not_allowed'
  | 'anonymous_not_allowed'
  | 'user_banned'
  | 'plan_not_allowed'
  | 'credential_not_allowed'
  | 'issuer_not_allowed'
  | 'api_key_network_not_allowed';
type InvalidTokenCode =
  | 'bad_jwt'
  | 'user_not_found'
  | 'session_not_found'
  | 'session_expired'
  | 'oauth_client_not_found'
  // These are about API keys.
  | 'invalid_api_key'
  | 'api_key_disabled'
  | 'api_key_expired'
  | 'several_credentials'
  | 'user_banned';

const realm = 'Bearer realm="tollgate"';
/** Each request retries the database. */
const retryAfterSeconds = 1;

/** The answer to a request whose policies cannot be found. */
export function refuse({ problem, reason }: FailedMatch): AuthzDenied {
  if (problem === 'unknown_route') return unavailable();
  if (problem === 'ambiguous_path') return ambiguousPath(reason);
  return deny(400, 'method_not_upper_case', errors.method_not_upper_case.definition.message);
}

/** 400 for a path that gateway and upstream may interpret differently, or that is unknown. */
export function ambiguousPath(reason: string): AuthzDenied {
  const message = `${errors.path_not_canonical.definition.message}: ${reason}`;
  return deny(400, 'path_not_canonical', message);
}

/**
 * 401 for a request without a token.
 *
 * @see RFC 6750 §3.1 https://www.rfc-editor.org/rfc/rfc6750#section-3.1
 */
export function noToken(): AuthzDenied {
  const { message } = errors.no_authorization.definition;
  return deny(401, 'no_authorization', message, { 'www-authenticate': realm });
}

/** 401 for a token or an API key that is malformed, expired or revoked. */
export function invalidToken(
  code: InvalidTokenCode,
  message: string = errors[code].definition.message,
): AuthzDenied {
  return deny(401, code, message, challenge('invalid_token', message));
}

/** @see RFC 9470 §3 https://www.rfc-editor.org/rfc/rfc9470#section-3 */
function insufficientAssurance(required: AssuranceLevel): AuthzDenied {
  const message = `This requires a session with assurance level ${required}`;
  const headers = challenge('insufficient_user_authentication', message, `, acr_values="${required}"`);
  return deny(401, 'insufficient_aal', message, headers);
}

/** @see RFC 6750 §3.1 https://www.rfc-editor.org/rfc/rfc6750#section-3.1 */
export function forbidden(code: ForbiddenCode): AuthzDenied {
  const { message } = errors[code].definition;
  return deny(403, code, message, challenge('insufficient_scope', message));
}

/** @see RFC 6750 §3 https://www.rfc-editor.org/rfc/rfc6750#section-3 */
function insufficientScope(scopes: readonly string[]): AuthzDenied {
  const { message } = errors.insufficient_scope.definition;
  const headers = challenge('insufficient_scope', message, `, scope="${scopes.join(' ')}"`);
  return deny(403, 'insufficient_scope', message, headers);
}

/** 429 for an address with too many wrong API keys. */
export function overLimit(retryAfter: number): AuthzDenied {
  return overRequestLimit({ 'retry-after': String(retryAfter) });
}

function overRequestLimit(headers: AuthzDenied['headers']): AuthzDenied {
  return deny(429, 'over_request_rate_limit', errors.over_request_rate_limit.definition.message, headers);
}

export function unavailable(
  code:
    | 'authorization_unavailable'
    | 'rate_limit_unavailable'
    | 'policy_invalid'
    | 'issuer_unavailable' = 'authorization_unavailable',
): AuthzDenied {
  const { message } = errors[code].definition;
  return deny(503, code, message, { 'retry-after': String(retryAfterSeconds) });
}

/** Descriptions are constants without characters that need quoting. */
function challenge(error: string, description: string, more = ''): Readonly<Record<string, string>> {
  return { 'www-authenticate': `${realm}, error="${error}", error_description="${description}"${more}` };
}

function deny(
  httpStatus: AuthzDenied['httpStatus'],
  errorCode: string,
  message: string,
  headers: AuthzDenied['headers'] = {},
): AuthzDenied {
  return { allowed: false, httpStatus, errorCode, message, headers };
}

/** The body of a denial, in the format of the API's errors. */
export function denialBody({ errorCode, message }: AuthzDenied, httpStatus: number): string {
  return JSON.stringify({ code: httpStatus, error_code: errorCode, msg: message });
}

export function denialHeaders({ headers }: AuthzDenied): Readonly<Record<string, string>> {
  return { 'content-type': 'application/json', ...headers };
}
