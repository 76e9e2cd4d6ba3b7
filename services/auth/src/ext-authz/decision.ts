import type { Logger } from '@tollgate/kit/logger';
import { errors } from '../errors.ts';
import type { AssuranceLevel } from '../sessions/sessions.ts';
import { identityHeaders } from './headers.ts';
import {
  type Caller,
  type CallerIdentity,
  createIdentifyCaller,
  type IdentifyCallerDeps,
} from './identity.ts';
import { readRequestPath } from './request-path.ts';
import { findRoute, type RouteDemand, type RouteRule, type RouteRules } from './route-rules.ts';

/** Headers that Envoy is to put in place of what the client sent, and those it is to remove. */
export interface HeaderChanges {
  /** Each replaces every header of that name. No name is in `remove` as well: Envoy removes last. */
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

/** May a request pass? */
export type AuthzDecision = AuthzAllowed | AuthzDenied;

/** It may; `identity` is absent on a public route without a valid token. */
export interface AuthzAllowed {
  readonly allowed: true;
  readonly identity: CallerIdentity | undefined;
  readonly headers: HeaderChanges;
}

/** It may not, and this is what the client is told, as JSON `{ code, error_code, msg }`. */
export interface AuthzDenied {
  readonly allowed: false;
  /** 400 a path that could be read in two ways, 401 no valid token, 403 not this user, 503 nobody can tell right now. */
  readonly httpStatus: 400 | 401 | 403 | 503;
  readonly errorCode: string;
  readonly message: string;
  /** Besides `content-type`: `www-authenticate` with 401 and 403 (RFC 6750 §3, RFC 9470), `retry-after` with 503. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What a decision looks at of a request. */
export interface AuthzRequest {
  /** In upper case. */
  readonly method: string;
  /** As the client sent it, with its query: nothing decoded, nothing resolved. */
  readonly path: string;
  /** Values of all `authorization` headers there were, in order; a list joined by a proxy is one value. */
  readonly authorization: readonly string[];
  /** Names of all headers there were, in lower case. */
  readonly headerNames: readonly string[];
}

/** What the rules say of a request, whoever makes it. */
export type RouteVerdict =
  | {
      readonly ok: true;
      /** The route that decides; undefined where none matches. */
      readonly route: RouteRule | undefined;
      readonly demand: RouteDemand;
    }
  /** Its path could be read in two ways. */
  | { readonly ok: false; readonly reason: string };

/** Finds the rule for a method and a path as it was sent, with or without a query. */
export function judgeRoute(rules: RouteRules, method: string, target: string): RouteVerdict {
  const read = readRequestPath(method, target);
  if (!read.ok) return read;
  const { segments, otherReadings } = read.path;
  const route = findRoute(rules, method, segments);
  if (otherReadings.some((reading) => findRoute(rules, method, reading) !== route))
    return { ok: false, reason: 'another rule holds for it without what follows a ;, or an encoded ? or #' };
  return { ok: true, route, demand: route?.demand ?? rules.fallback };
}

/** What a caller lacks. */
type UnmetDemand = 'role_not_allowed' | 'insufficient_aal' | 'anonymous_not_allowed';

/** The first thing that a caller lacks for a route; undefined when nothing. */
function unmetDemand(
  { roles, aal, anonymous }: Extract<RouteDemand, { access: 'authenticated' }>,
  identity: CallerIdentity,
): UnmetDemand | undefined {
  if (roles !== undefined && !roles.includes(identity.role)) return 'role_not_allowed';
  // Their names sort as they are meant: aal1, aal2, aal3.
  if (identity.aal < aal) return 'insufficient_aal';
  return identity.isAnonymous && !anonymous ? 'anonymous_not_allowed' : undefined;
}

/** Codes of refusals that no token would change. */
type ForbiddenCode = 'route_denied' | 'role_not_allowed' | 'anonymous_not_allowed' | 'user_banned';

/** Codes of tokens that are not good, or not any more. */
type BadTokenCode = 'bad_jwt' | 'user_not_found' | 'session_not_found' | 'session_expired';

const realm = 'Bearer realm="tollgate"';

/** The database is asked again with every request: by then it may be back. */
const retryAfterSeconds = 1;

/** 400: two servers might read the path in two ways. */
function badPath(reason: string): AuthzDenied {
  const message = `${errors.path_not_canonical.definition.message}: ${reason}`;
  return deny(400, 'path_not_canonical', message);
}

/** 401 for a request without a token, which says nothing of an error. @see RFC 6750 §3.1 https://www.rfc-editor.org/rfc/rfc6750#section-3.1 */
export function noToken(): AuthzDenied {
  const { message } = errors.no_authorization.definition;
  return deny(401, 'no_authorization', message, { 'www-authenticate': realm });
}

/** 401 for a token that is broken, has ended or was revoked: another one may pass. */
export function badToken(code: BadTokenCode, message: string = errors[code].definition.message): AuthzDenied {
  return deny(401, code, message, challenge('invalid_token', message));
}

/** 401 for a session that has proved too little. @see RFC 9470 §3 https://www.rfc-editor.org/rfc/rfc9470#section-3 */
function tooLowAssurance(wanted: AssuranceLevel): AuthzDenied {
  const message = `This needs a session of assurance ${wanted}`;
  const headers = challenge('insufficient_user_authentication', message, `, acr_values="${wanted}"`);
  return deny(401, 'insufficient_aal', message, headers);
}

/** 403: not this caller, or nobody. @see RFC 6750 §3.1 https://www.rfc-editor.org/rfc/rfc6750#section-3.1 */
export function forbidden(code: ForbiddenCode): AuthzDenied {
  const { message } = errors[code].definition;
  return deny(403, code, message, challenge('insufficient_scope', message));
}

/** 503: who calls cannot be told right now. */
export function unavailable(): AuthzDenied {
  const { message } = errors.authorization_unavailable.definition;
  return deny(503, 'authorization_unavailable', message, { 'retry-after': String(retryAfterSeconds) });
}

/** Messages are ours and constant: nothing in them needs quoting. */
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

/**
 * Decides whether a request may pass; at once where nothing has to be asked. Never throws or rejects: what cannot be told is denied with
 * 503, and so is what cannot be told within `timeoutMs`, after which the proxy would take no answer for an error.
 */
export type AuthorizeRequest = (
  request: AuthzRequest,
  timeoutMs?: number,
) => AuthzDecision | Promise<AuthzDecision>;

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
  return (request, timeoutMs) => {
    try {
      const verdict = judgeRoute(deps.rules(), request.method, request.path);
      if (!verdict.ok) return badPath(verdict.reason);
      const { demand } = verdict;
      if (demand.access === 'deny') return forbidden('route_denied');
      const caller = identifyCaller(request.authorization, timeoutMs);
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

/** The body of a refusal, in the form of the API's errors. */
export function denialBody({ errorCode, message }: AuthzDenied, httpStatus: number): string {
  return JSON.stringify({ code: httpStatus, error_code: errorCode, msg: message });
}

/** The headers of a refusal. */
export function denialHeaders({ headers }: AuthzDenied): Readonly<Record<string, string>> {
  return { 'content-type': 'application/json', ...headers };
}
