import type { Logger } from '@tollgate/kit/logger';
import type { AuthzDecision, AuthzDenied } from '../../domain/authz/authz-decision.ts';
import type { AuthzRequest } from '../../domain/authz/authz-request.ts';
import type { CallerIdentity } from '../../domain/authz/caller-identity.ts';
import { identityHeaders } from '../../domain/authz/identity-headers.ts';
import { judgeRoute } from '../../domain/authz/judge-route.ts';
import type { RouteDemand, RouteRules } from '../../domain/authz/route-rules.ts';
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

/** What is demanded of requests that pass for somebody. */
type PassableDemand = Exclude<RouteDemand, { access: 'deny' }>;

/** Makes the decision: path, route, token, state of user and session, and then what the route demands, in this order. */
export function createAuthorizeRequest(deps: AuthorizeRequestDeps): AuthorizeRequest {
  const identifyCaller = createIdentifyCaller(deps);
  return (request) => {
    try {
      const verdict = judgeRoute(deps.rules(), request.method, request.path);
      if (!verdict.ok) return badPath(verdict.reason);
      const { demand } = verdict;
      if (demand.access === 'deny') return forbidden('route_denied');
      const caller = identifyCaller(request.authorization);
      return caller instanceof Promise
        ? decideLater(request, demand, caller)
        : decide(request, demand, caller);
    } catch (error) {
      return failClosed(error, deps.logger);
    }
  };

  async function decideLater(
    request: AuthzRequest,
    demand: PassableDemand,
    caller: Promise<Caller>,
  ): Promise<AuthzDecision> {
    try {
      return decide(request, demand, await caller);
    } catch (error) {
      return failClosed(error, deps.logger);
    }
  }
}

function decide(request: AuthzRequest, demand: PassableDemand, caller: Caller): AuthzDecision {
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
