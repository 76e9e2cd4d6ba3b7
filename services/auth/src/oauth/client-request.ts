import { isAppError } from '@tollgate/kit/errors';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { OAuthError, RetryLaterError } from '../errors.ts';
import { body, bodyLimits, optionalText } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import type { ClientAssertions } from './client-assertion.ts';
import { authenticateClient, type PresentedClient } from './client-authentication.ts';
import { requireOAuthServer } from './client-routes.ts';
import type { StoredClient } from './client-store.ts';
import type { OAuthContext } from './clients.ts';
import type { GrantContext } from './grant.ts';

export type EndpointContext = GrantContext & { readonly clientAssertions: ClientAssertions };

/** Members of bodies by which clients authenticate. */
export const clientMembers = {
  client_id: optionalText,
  client_secret: optionalText,
  client_assertion: optionalText,
  client_assertion_type: optionalText,
};

/** Options of a route that clients call. `onError` gets the code of each error. */
export function clientEndpoint(
  context: OAuthContext,
  { onError }: { readonly onError?: (code: string) => void } = {},
) {
  return {
    config: { limiter: 'oauth_token' },
    bodyLimit: bodyLimits.token,
    errorHandler: answerErrors(onError),
    onRequest: async (_request: FastifyRequest, reply: FastifyReply) => {
      // RFC 6749 §5.1.
      reply.header('cache-control', 'no-store').header('pragma', 'no-cache');
      requireOAuthServer(context);
    },
    preHandler: async (request: FastifyRequest) => rejectRepeated(request),
  } as const;
}

/** Body of the endpoints to which a client presents a token. @see RFC 7009 §2.1, RFC 7662 §2.1 */
export const presentedTokenBody = body({
  ...clientMembers,
  token: optionalText,
  token_type_hint: optionalText,
});

type PresentedMembers = { readonly [Name in keyof typeof clientMembers]?: string | undefined };

/** Authenticates the client of a request. @throws OAuthError as `authenticateClient` */
export function readClient(
  context: EndpointContext,
  request: FastifyRequest,
  presented: PresentedMembers,
): Promise<StoredClient> {
  const credentials = presentedClient(request, presented);
  return authenticateClient(context, credentials, requestMetadata(request, context));
}

/** Reads the credentials of the client of a request. */
export function presentedClient(request: FastifyRequest, presented: PresentedMembers): PresentedClient {
  return {
    client_id: presented.client_id,
    client_secret: presented.client_secret,
    client_assertion: presented.client_assertion,
    client_assertion_type: presented.client_assertion_type,
    authorization: request.headers.authorization,
  };
}

/** Only `resource` may be repeated. @see RFC 6749 §3.2, RFC 8707 §2 */
function rejectRepeated({ form }: FastifyRequest): void {
  if (form === undefined) return;
  const names = [...form.keys()].filter((name) => name !== 'resource');
  if (new Set(names).size < names.length)
    throw new OAuthError('invalid_request', 'A parameter is included more than once');
}

/** Passes errors on in the format of RFC 6749 §5.2. */
function answerErrors(onError: ((code: string) => void) | undefined) {
  return (error: FastifyError, _request: FastifyRequest, reply: FastifyReply): never => {
    const passed = toOAuthError(error);
    const code = passed instanceof OAuthError ? passed.code : 'failed';
    if (!isAppError(passed) || passed.code !== 'feature_disabled') onError?.(code);
    if (error instanceof RetryLaterError) reply.header('retry-after', error.retryAfterSeconds);
    throw passed;
  };
}

/** OAuth 2.0 errors of refused grants. */
const grantErrors: Readonly<Record<string, string>> = {
  refresh_token_not_found: 'invalid_grant',
  refresh_token_already_used: 'invalid_grant',
  session_expired: 'invalid_grant',
  session_not_found: 'invalid_grant',
  oauth_client_not_found: 'invalid_client',
  user_banned: 'access_denied',
  // A decision of a hook.
  unknown: 'access_denied',
};

const invalidBodies: readonly string[] = ['bad_json', 'validation_failed', 'request_entity_too_large'];

function toOAuthError(error: FastifyError): Error {
  const { message, statusCode } = error;
  // Other errors than those of Fastify have none.
  const code = String(error.code);
  if (error instanceof OAuthError) return error;
  if (!isAppError(error)) {
    const isBodyError = error.validation !== undefined || code.startsWith('FST_ERR_CTP_');
    return isBodyError ? new OAuthError('invalid_request', message, statusCode) : error;
  }
  const refused = grantErrors[code];
  if (refused !== undefined) return new OAuthError(refused, message);
  if (error.httpStatus === 429) return new OAuthError('temporarily_unavailable', message, 429);
  return invalidBodies.includes(code) ? new OAuthError('invalid_request', message, error.httpStatus) : error;
}
