import { isAppError } from '@tollgate/kit/errors';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { OAuthError, RetryLaterError } from '../errors.ts';
import { type AddRoutes, body, bodyLimits, optionalText } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { grantAuthorizationCode } from './authorization-code.ts';
import { ClientAssertions } from './client-assertion.ts';
import { authenticateClient, InvalidClientError } from './client-authentication.ts';
import { grantClientCredentials } from './client-credentials.ts';
import { requireOAuthServer } from './client-routes.ts';
import type { StoredClient } from './client-store.ts';
import type { OAuthContext } from './clients.ts';
import type { GrantContext, TokenRequest, TokenResponse } from './grant.ts';
import { grantRefreshToken } from './refresh-token.ts';

type Grant = (
  context: GrantContext,
  client: StoredClient,
  request: TokenRequest,
) => TokenResponse | Promise<TokenResponse>;

/** Grants by `grant_type`. */
const grants: ReadonlyMap<string, Grant> = new Map<string, Grant>([
  ['authorization_code', grantAuthorizationCode],
  ['refresh_token', grantRefreshToken],
  ['client_credentials', grantClientCredentials],
]);

export const servedGrants: readonly string[] = [...grants.keys()];

const tokenBody = body({
  grant_type: optionalText,
  client_id: optionalText,
  client_secret: optionalText,
  client_assertion: optionalText,
  client_assertion_type: optionalText,
  code: optionalText,
  redirect_uri: optionalText,
  code_verifier: optionalText,
  refresh_token: optionalText,
  scope: optionalText,
  resource: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
});

/** `/oauth/token`: a form, or JSON with the same members. @see RFC 6749 §3.2 */
export const addOAuthTokenRoutes: AddRoutes<GrantContext> = (api, context) => {
  const within = { ...context, clientAssertions: new ClientAssertions(context) };
  const options = {
    schema: { body: tokenBody },
    config: { limiter: 'oauth_token' },
    bodyLimit: bodyLimits.token,
    errorHandler: answerErrors(context),
    onRequest: async (_request: FastifyRequest, reply: FastifyReply) => {
      // RFC 6749 §5.1.
      reply.header('cache-control', 'no-store').header('pragma', 'no-cache');
      requireOAuthServer(context);
    },
  } as const;
  api.post('/oauth/token', options, async (request, reply) => {
    const { grant_type: grantType = '', ...presented } = request.body;
    rejectRepeated(request);
    if (grantType === '') throw new OAuthError('invalid_request', 'grant_type is required');
    const grant = grants.get(grantType);
    if (grant === undefined) throw new OAuthError('unsupported_grant_type', 'Unknown grant_type');
    const client = await authenticateClient(within, {
      ...{ client_id: undefined, client_secret: undefined },
      ...{ client_assertion: undefined, client_assertion_type: undefined },
      ...presented,
      authorization: request.headers.authorization,
    });
    if (!client.grant_types.includes(grantType))
      throw new OAuthError('unauthorized_client', 'The client may not use this grant_type');
    await context.limiter.enforce('oauth_client', { key: client.id, nowMs: context.nowMs() });
    const resources = request.form?.getAll('resource') ?? [presented.resource ?? []].flat();
    const response = await grant(within, client, {
      scope: presented.scope,
      resources,
      code: presented.code,
      redirectUri: presented.redirect_uri,
      codeVerifier: presented.code_verifier,
      refreshToken: presented.refresh_token,
      metadata: requestMetadata(request, context),
    });
    context.metrics.oauthTokens.inc({ result: 'issued' });
    return reply.send(response);
  });
};

/** Only `resource` may be repeated. @see RFC 6749 §3.2, RFC 8707 §2 */
function rejectRepeated({ form }: FastifyRequest): void {
  if (form === undefined) return;
  const names = [...form.keys()].filter((name) => name !== 'resource');
  if (new Set(names).size < names.length)
    throw new OAuthError('invalid_request', 'A parameter is included more than once');
}

/** Counts errors, and passes them on in the format of RFC 6749 §5.2. */
function answerErrors({ metrics }: Pick<OAuthContext, 'metrics'>) {
  return (error: FastifyError, _request: FastifyRequest, reply: FastifyReply): never => {
    const passed = toOAuthError(error);
    const code = passed instanceof OAuthError ? passed.code : 'failed';
    if (!isAppError(passed) || passed.code !== 'feature_disabled') metrics.oauthTokens.inc({ result: code });
    if (error instanceof InvalidClientError && error.usesHeader)
      reply.header('www-authenticate', 'Basic realm="tollgate", charset="UTF-8"');
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
