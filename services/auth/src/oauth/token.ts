import { isAppError } from '@tollgate/kit/errors';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { OAuthError, RetryLaterError } from '../errors.ts';
import { type AddRoutes, body, bodyLimits, optionalText } from '../http/api.ts';
import { ClientAssertions } from './client-assertion.ts';
import {
  type AuthenticationContext,
  authenticateClient,
  InvalidClientError,
} from './client-authentication.ts';
import { grantClientCredentials, type TokenRequest, type TokenResponse } from './client-credentials.ts';
import { requireOAuthServer } from './client-routes.ts';
import type { StoredClient } from './client-store.ts';
import type { OAuthContext } from './clients.ts';

type Grant = (context: AuthenticationContext, client: StoredClient, request: TokenRequest) => TokenResponse;

/** Grants by `grant_type`. */
const grants: ReadonlyMap<string, Grant> = new Map([['client_credentials', grantClientCredentials]]);

export const servedGrants: readonly string[] = [...grants.keys()];

const tokenBody = body({
  grant_type: optionalText,
  client_id: optionalText,
  client_secret: optionalText,
  client_assertion: optionalText,
  client_assertion_type: optionalText,
  scope: optionalText,
  resource: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
});

/** `/oauth/token`: a form, or JSON with the same members. @see RFC 6749 §3.2 */
export const addOAuthTokenRoutes: AddRoutes<OAuthContext> = (api, context) => {
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
    const { grant_type: grantType = '', scope, ...presented } = request.body;
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
    const response = grant(within, client, { scope, resources });
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
  if (error.httpStatus === 429) return new OAuthError('temporarily_unavailable', message, 429);
  return invalidBodies.includes(code) ? new OAuthError('invalid_request', message, error.httpStatus) : error;
}
