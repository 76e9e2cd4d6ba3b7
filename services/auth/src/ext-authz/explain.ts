import type { Access } from '@tollgate/policies/compile/access';
import { hasBrowser } from '@tollgate/policies/compile/browser';
import type { PolicyTable } from '@tollgate/policies/compile/policy-table';
import type { CallerIdentity } from '@tollgate/policies/decide/caller';
import { type MatchedPolicy, matchRequest, type RequestMatch } from '@tollgate/policies/decide/match-request';
import type { RouteHit, RouteReference } from '@tollgate/policies/match/route';
import { errors } from '../errors.ts';
import { isNavigation } from './browser-request.ts';
import type { Caller } from './caller.ts';
import { decide, findFixedDenial } from './decision.ts';
import { overLimit, refuse, unavailable } from './denials.ts';
import { type ExplainCallerContext, type ExplainedCaller, identifyExplained } from './explain-caller.ts';
import { identityMetadata } from './grpc.ts';
import type { LimitPeek } from './rate-limit.ts';
import type { RateLimiter } from './rate-limiter.ts';
import type { AuthzRequest } from './request.ts';
import type { ResourceMetadata } from './resource-metadata.ts';
import type { AuthzDecision } from './result.ts';

export interface ExplainedRequest extends ExplainedCaller {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The route that the gateway would say. */
  readonly route?: RouteReference | undefined;
  /** `namespace/name` of the policy that is applied instead of the one that is found. */
  readonly policy?: string | undefined;
}

export interface ExplainContext extends ExplainCallerContext {
  readonly rateLimiter: Pick<RateLimiter, 'check' | 'peek'> | undefined;
  readonly resources: Pick<ResourceMetadata, 'answer'>;
}

/** How a check would be decided, ready for JSON. */
export type Explanation = Awaited<ReturnType<CheckExplainer['explain']>>;

/** Says how a check would be decided, without side effects: nothing is counted or recorded. */
export class CheckExplainer {
  readonly #context: ExplainContext;

  constructor(context: ExplainContext) {
    this.#context = context;
  }

  async explain(input: ExplainedRequest) {
    const { rules, policies, resources } = this.#context;
    const { current } = rules;
    const request = toRequest(input);
    const target = { method: request.method, host: request.host, path: request.path.split('?', 1)[0] };
    if (policies !== undefined && policies.current === undefined)
      return { request: target, reason: 'no policies have arrived yet', decision: toJson(unavailable()) };
    const answer = resources.answer(request);
    if (answer !== undefined) {
      const { httpStatus: status, headers } = answer;
      const reason = 'the auth server itself answers with the metadata of the resource (RFC 9728)';
      return { request: target, reason, decision: { allowed: false, status, headers } };
    }
    const match = findMatch(current, request, { table: policies?.current, policy: input.policy });
    if (!match.ok) return { request: target, reason: match.reason, decision: toJson(refuse(match)) };
    const { matched, hits } = match;
    const caller = await identifyExplained(this.#context, input, current.claims);
    const options = { matched, added: current.addedAttributes };
    const decided = findFixedDenial(matched) ?? decide(request, options, caller);
    const access = this.#redirect(request, match, { caller, decided }) ?? decided;
    const identity = caller.ok ? caller.identity : undefined;
    const limits = await this.#peek(request, matched, identity);
    return {
      request: target,
      route: {
        found_by: input.policy ? 'policy' : input.route ? 'gateway' : 'host and match',
        hits: hits.map(({ route, rule, uncertain }) => ({
          ...{ kind: route.kind, namespace: route.namespace, name: route.name },
          ...(rule.sectionName !== '' && { section_name: rule.sectionName }),
          ...{ hosts: rule.hosts, gateways: rule.gateways, policy: rule.policy, overrides: rule.overrides },
          ...(uncertain && { problem: 'a match of the route cannot be compiled' }),
        })),
      },
      caller: describeCaller(caller),
      policies: matched.map((one, index) =>
        describePolicy(one, {
          ...{ caller, limits: limits[index] ?? [], request, added: current.addedAttributes },
          reason: input.policy ? 'the question names it' : findReason(one, hits, request.host),
        }),
      ),
      decision: toJson(access.allowed ? this.#applyLimits(access, limits.flat()) : access),
    };
  }

  /** Where a browser without credentials would go. */
  #redirect(
    request: AuthzRequest,
    { matched, hits }: Extract<RequestMatch, { readonly ok: true }>,
    { caller, decided }: { readonly caller: Caller; readonly decided: AuthzDecision },
  ): AuthzDecision | undefined {
    if (decided.allowed || caller.ok || caller.denial.errorCode !== 'no_authorization') return undefined;
    if (!matched.some(({ rule }) => hasBrowser(rule.access)) || !isNavigation(request)) return undefined;
    return this.#context.browsers?.begin(request, hits);
  }

  /** The counters of each policy. */
  async #peek(
    request: AuthzRequest,
    matched: readonly MatchedPolicy[],
    identity: CallerIdentity | undefined,
  ): Promise<readonly (readonly LimitPeek[])[]> {
    const { rateLimiter } = this.#context;
    return Promise.all(
      matched.map(({ policy, rule: { limits, label } }) => {
        const check = { request, identity, limits, domain: policy.limitDomain, rulePath: label };
        return rateLimiter?.peek({ ...check, timeLeftMs: Number.POSITIVE_INFINITY }) ?? [];
      }),
    );
  }

  #applyLimits(decision: AuthzDecision, limits: readonly LimitPeek[]): AuthzDecision {
    if (limits.some(({ state }) => state === 'failed_closed')) return unavailable('rate_limit_unavailable');
    const exceeded = limits.filter(({ state }) => state === 'exceeded');
    if (exceeded.length === 0) return decision;
    return overLimit(Math.max(1, ...exceeded.map(({ resetSeconds = 1 }) => resetSeconds)));
  }
}

function toRequest({ method, url, headers = {}, route, address = '' }: ExplainedRequest): AuthzRequest {
  if (!URL.canParse(url)) throw errors.validation_failed({ message: 'url must be a complete URL' });
  // The path stays as it is written: URL would normalize it.
  const [, host = '', path = ''] = /^[a-z]+:\/\/([^/?#]*)([^#]*)/i.exec(url) ?? [];
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    ...{ method, host, path: path.startsWith('/') ? path : `/${path}`, route },
    ...{ headers: Object.fromEntries(named), headerNames: named.map(([name]) => name) },
    ...{ authorization: [], sourceAddress: address, forwardedFor: [] },
  };
}

function findMatch(
  rules: Parameters<typeof matchRequest>[0],
  request: AuthzRequest,
  { table, policy }: { readonly table: PolicyTable | undefined; readonly policy: string | undefined },
): RequestMatch {
  if (policy === undefined || policy === '') return matchRequest(rules, request, table);
  const named = table?.named(policy);
  if (named === undefined) throw errors.validation_failed({ message: `no policy is named ${policy}` });
  return matchRequest({ policy: named }, request);
}

function describeCaller(caller: Caller) {
  if (!caller.ok) return { problem: caller.denial.errorCode, message: caller.denial.message };
  const { identity } = caller;
  return { ...identityMetadata(identity), ...(identity.key && { key_id: identity.key.id }) };
}

interface PolicyOptions {
  readonly caller: Caller;
  readonly limits: readonly LimitPeek[];
  readonly request: AuthzRequest;
  readonly added: readonly string[];
  /** Why the policy applies. */
  readonly reason: string;
}

function findReason({ policy: { name } }: MatchedPolicy, hits: readonly RouteHit[], host: string): string {
  if (name === undefined)
    return hits.length === 0 ? `no access policy is for ${host}` : 'the route has no access policy';
  const applying = hits.find(({ rule }) => rule.policy === name);
  if (applying !== undefined) return `it applies to ${describeRoute(applying)}`;
  const overridden = hits.find(({ rule }) => rule.overrides.includes(name));
  if (overridden !== undefined) return `its overrides hold for ${describeRoute(overridden)}`;
  const uncertain = hits.find((hit) => hit.uncertain);
  if (uncertain !== undefined) return `a match of ${describeRoute(uncertain)} cannot be compiled`;
  return `one of its hosts is for ${host}`;
}

function describeRoute({ route: { kind, namespace, name }, rule: { sectionName } }: RouteHit): string {
  return `${kind} ${namespace}/${name}${sectionName === '' ? '' : `, section ${sectionName}`}`;
}

/** A policy, the rule in it, and what it alone would decide. */
function describePolicy(one: MatchedPolicy, { caller, limits, request, added, reason }: PolicyOptions) {
  const { policy, rule } = one;
  const denial = findFixedDenial([one]) ?? decide(request, { matched: [one], added }, caller);
  return {
    name: policy.name ?? 'routes file',
    reason,
    rule: rule.label ?? 'default',
    access: describeAccess(rule.access),
    ...(denial.allowed
      ? { allows: true }
      : { allows: false, error_code: denial.errorCode, message: denial.message }),
    limits: limits.map(({ resetSeconds, ...limit }) => ({
      ...limit,
      ...(resetSeconds !== undefined && { reset_seconds: resetSeconds }),
    })),
  };
}

function describeAccess(access: Access): object {
  return Object.fromEntries(Object.entries(access).filter(([, value]) => value !== undefined));
}

/** The answer that the gateway would get. Headers are those of the upstream, or of the client. */
function toJson(decision: AuthzDecision) {
  if (decision.allowed) return { allowed: true, status: 200, upstream_headers: decision.headers.set };
  const { httpStatus, errorCode, message, headers } = decision;
  return { allowed: false, status: httpStatus, error_code: errorCode, message, headers };
}
