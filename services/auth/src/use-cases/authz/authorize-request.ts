import type { Logger } from '@tollgate/kit/logger';
import type { AuthzDecision, AuthzDenied } from '../../domain/authz/authz-decision.ts';
import type { AuthzRequest } from '../../domain/authz/authz-request.ts';
import type { CallerIdentity } from '../../domain/authz/caller-identity.ts';
import { identityHeaders } from '../../domain/authz/identity-headers.ts';
import { type ReadPath, readRequestPath } from '../../domain/authz/request-path.ts';
import { findRoute, type RouteDemand, type RouteRules } from '../../domain/authz/route-rules.ts';
import { unmetDemand } from '../../domain/authz/unmet-demand.ts';
import { badPath, forbidden, tooLowAssurance, unavailable } from './denials.ts';
import { type Caller, createIdentifyCaller, type IdentifyCallerDeps } from './identify-caller.ts';

/** Decides whether a request may pass; at once where nothing has to be asked. Never throws or rejects: what cannot be told is denied with 503. */
export type AuthorizeRequest = (request: AuthzRequest) => AuthzDecision | Promise<AuthzDecision>;

/** What that takes. */
export interface AuthorizeRequestDeps extends IdentifyCallerDeps {
  /** The rules in force; asked for with every request. */
  readonly rules: () => RouteRules;
}

/** What is demanded of a request, or why it is denied whoever calls. */
type RouteVerdict =
  | { readonly ok: true; readonly demand: Exclude<RouteDemand, { access: 'deny' }> }
  | { readonly ok: false; readonly denial: AuthzDenied };

/** Makes the decision: path, route, token, state of user and session, and then what the route demands, in this order. */
export function createAuthorizeRequest(deps: AuthorizeRequestDeps): AuthorizeRequest {
  const identifyCaller = createIdentifyCaller(deps);
  return (request) => {
    try {
      const route = judgeRoute(request, deps.rules());
      if (!route.ok) return route.denial;
      const caller = identifyCaller(request.authorization);
      return caller instanceof Promise
        ? decideLater(request, route.demand, caller)
        : decide(request, route.demand, caller);
    } catch (error) {
      return failClosed(error, deps.logger);
    }
  };

  async function decideLater(
    request: AuthzRequest,
    demand: Exclude<RouteDemand, { access: 'deny' }>,
    caller: Promise<Caller>,
  ): Promise<AuthzDecision> {
    try {
      return decide(request, demand, await caller);
    } catch (error) {
      return failClosed(error, deps.logger);
    }
  }
}

function judgeRoute(request: AuthzRequest, rules: RouteRules): RouteVerdict {
  const read: ReadPath = readRequestPath(request.method, request.path);
  if (!read.ok) return { ok: false, denial: badPath(read.reason) };
  const { segments, withoutParameters } = read.path;
  const route = findRoute(rules, request.method, segments);
  if (withoutParameters !== undefined && findRoute(rules, request.method, withoutParameters) !== route)
    return { ok: false, denial: badPath('another rule holds for it without the parameters (;)') };
  const demand = route?.demand ?? rules.fallback;
  return demand.access === 'deny' ? { ok: false, denial: forbidden('route_denied') } : { ok: true, demand };
}

function decide(
  request: AuthzRequest,
  demand: Exclude<RouteDemand, { access: 'deny' }>,
  caller: Caller,
): AuthzDecision {
  // A token is not asked for here: who has a bad one is nobody.
  if (demand.access === 'public') return allow(request, caller.ok ? caller.identity : undefined);
  if (!caller.ok) return caller.denial;
  const unmet = unmetDemand(demand, caller.identity);
  if (unmet === undefined) return allow(request, caller.identity);
  return unmet === 'insufficient_aal' ? tooLowAssurance(demand.aal) : forbidden(unmet);
}

function allow(request: AuthzRequest, identity: CallerIdentity | undefined): AuthzDecision {
  return { allowed: true, identity, headers: identityHeaders(identity, request.headerNames) };
}

/** A fault of our own must not let anybody pass. */
function failClosed(error: unknown, logger: Pick<Logger, 'error'>): AuthzDenied {
  logger.error({ err: error }, 'request not authorized because of a failure');
  return unavailable();
}
