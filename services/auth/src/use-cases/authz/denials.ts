import type { AuthzDenied } from '../../domain/authz/authz-decision.ts';
import type { AssuranceLevel } from '../../domain/session.ts';
import { errors } from '../../errors.ts';

/** Codes of refusals that no token would change. */
type ForbiddenCode = 'route_denied' | 'role_not_allowed' | 'anonymous_not_allowed' | 'user_banned';

/** Codes of tokens that are not good, or not any more. */
type BadTokenCode = 'bad_jwt' | 'user_not_found' | 'session_not_found' | 'session_expired';

const realm = 'Bearer realm="tollgate"';

/** The database is asked again with every request: by then it may be back. */
const retryAfterSeconds = 1;

/** 400: two servers might read the path in two ways. */
export function badPath(reason: string): AuthzDenied {
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
export function tooLowAssurance(wanted: AssuranceLevel): AuthzDenied {
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
