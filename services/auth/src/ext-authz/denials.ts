import { denialStatuses } from '@tollgate/policies/decide/access';
import type { FailedMatch } from '@tollgate/policies/decide/match-request';
import { proofAlgorithms } from '../dpop/proof.ts';
import type { ProofResult } from '../dpop/proofs.ts';
import { nonceHeader, wrongSchemeMessage } from '../dpop/request.ts';
import { errors } from '../errors.ts';
import type { AssuranceLevel } from '../sessions/store.ts';
import type { AuthzDenied } from './result.ts';

/** Denials that another token would not change. */
export type ForbiddenCode =
  | 'route_denied'
  | 'role_not_allowed'
  | 'anonymous_not_allowed'
  | 'user_banned'
  | 'plan_not_allowed'
  | 'credential_not_allowed'
  | 'issuer_not_allowed'
  | 'cross_site_request'
  | 'api_key_network_not_allowed';
type InvalidTokenCode =
  | 'bad_jwt'
  | 'user_not_found'
  | 'session_not_found'
  | 'session_expired'
  | 'oauth_client_not_found'
  | 'invalid_dpop_proof'
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
  return denyByPolicy('method_not_upper_case', errors.method_not_upper_case.definition.message);
}

/** 400 for a path that gateway and upstream may interpret differently, or that is unknown. */
export function ambiguousPath(reason: string): AuthzDenied {
  const message = `${errors.path_not_canonical.definition.message}: ${reason}`;
  return denyByPolicy('path_not_canonical', message);
}

/**
 * 401 for a request without a token.
 *
 * @see RFC 6750 §3.1 https://www.rfc-editor.org/rfc/rfc6750#section-3.1
 */
export function noToken(): AuthzDenied {
  const { message } = errors.no_authorization.definition;
  return denyByPolicy('no_authorization', message, { 'www-authenticate': realm });
}

/** 401 for a token or an API key that is malformed, expired or revoked. */
export function invalidToken(
  code: InvalidTokenCode,
  message: string = errors[code].definition.message,
): AuthzDenied {
  return deny(401, code, message, challenge('invalid_token', message));
}

/** 401 for a bound token without the scheme `DPoP`, and for another token with it. */
export function wrongScheme(): AuthzDenied {
  return forDpop(invalidToken('invalid_dpop_proof', wrongSchemeMessage));
}

/** 401 for a bound token without an accepted proof. */
export function invalidProof({ error, reason, nonce }: Extract<ProofResult, { ok: false }>): AuthzDenied {
  const { message } = errors[error].definition;
  const headers = { ...challenge(error, message), ...(nonce !== undefined && { [nonceHeader]: nonce }) };
  return forDpop(deny(401, error, `${message}: ${reason}`, headers));
}

const bearerScheme = /^Bearer /;

/**
 * Denies with the challenge of the scheme `DPoP`.
 *
 * @see RFC 9449 §7.1 https://www.rfc-editor.org/rfc/rfc9449#section-7.1
 */
export function forDpop(denial: AuthzDenied): AuthzDenied {
  const value = denial.headers['www-authenticate'] ?? '';
  if (!bearerScheme.test(value)) return denial;
  const challenged = `${value.replace(bearerScheme, 'DPoP ')}, algs="${proofAlgorithms.join(' ')}"`;
  return { ...denial, headers: { ...denial.headers, 'www-authenticate': challenged } };
}

/** 302 for a browser that goes to another page, with a cookie. */
export function redirectBrowser(
  location: string,
  cookie: string,
  code: 'sign_in_required' | 'signed_in' = 'sign_in_required',
): AuthzDenied {
  return deny(302, code, errors[code].definition.message, redirectHeaders(location, cookie));
}

/** 303 for a browser that has signed out. */
export function signedOut(location: string, cookie: string): AuthzDenied {
  const { message } = errors.signed_out.definition;
  return deny(303, 'signed_out', message, redirectHeaders(location, cookie));
}

function redirectHeaders(location: string, cookie: string): AuthzDenied['headers'] {
  return {
    ...{ location, 'set-cookie': cookie },
    ...{ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' },
  };
}

interface RenderedPage {
  readonly headers: AuthzDenied['headers'];
  readonly body: string;
}

/** 400 for a code that is not for this browser, or was used. */
export function signInFailed({ headers, body }: RenderedPage): AuthzDenied {
  const { message } = errors.sign_in_failed.definition;
  return { ...deny(400, 'sign_in_failed', message, headers), page: body };
}

/** 405 for a link to the sign-out, with a form. Over HTTP, 200 would allow the request. */
export function askToSignOut({ headers, body }: RenderedPage): AuthzDenied {
  const { message } = errors.sign_out_needs_post.definition;
  return { ...deny(405, 'sign_out_needs_post', message, { ...headers, allow: 'POST' }), page: body };
}

/** @see RFC 9470 §3 https://www.rfc-editor.org/rfc/rfc9470#section-3 */
export function insufficientAssurance(required: AssuranceLevel): AuthzDenied {
  const message = `This requires a session with assurance level ${required}`;
  const headers = challenge('insufficient_user_authentication', message, `, acr_values="${required}"`);
  return denyByPolicy('insufficient_aal', message, headers);
}

/** @see RFC 6750 §3.1 https://www.rfc-editor.org/rfc/rfc6750#section-3.1 */
export function forbidden(code: ForbiddenCode): AuthzDenied {
  const { message } = errors[code].definition;
  return deny(403, code, message, challenge('insufficient_scope', message));
}

/** @see RFC 6750 §3 https://www.rfc-editor.org/rfc/rfc6750#section-3 */
export function insufficientScope(scopes: readonly string[]): AuthzDenied {
  const { message } = errors.insufficient_scope.definition;
  const headers = challenge('insufficient_scope', message, `, scope="${scopes.join(' ')}"`);
  return denyByPolicy('insufficient_scope', message, headers);
}

/** 429 for an address with too many wrong API keys. */
export function overLimit(retryAfter: number): AuthzDenied {
  return overRequestLimit({ 'retry-after': String(retryAfter) });
}

export function overRequestLimit(headers: AuthzDenied['headers']): AuthzDenied {
  return denyByPolicy('over_request_rate_limit', errors.over_request_rate_limit.definition.message, headers);
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

function denyByPolicy(
  code: keyof typeof denialStatuses,
  message: string,
  headers: AuthzDenied['headers'] = {},
): AuthzDenied {
  return deny(denialStatuses[code], code, message, headers);
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
export function denialBody({ errorCode, message, page }: AuthzDenied, httpStatus: number): string {
  return page ?? JSON.stringify({ code: httpStatus, error_code: errorCode, msg: message });
}

export function denialHeaders({ headers }: AuthzDenied): Readonly<Record<string, string>> {
  return { 'content-type': 'application/json', ...headers };
}
