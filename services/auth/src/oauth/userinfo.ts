import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { OAuthError } from '../errors.ts';
import type { AddRoutes } from '../http/api.ts';
import { authenticateUser } from '../sessions/authenticate.ts';
import { requireOAuthServer } from './client-routes.ts';
import type { OAuthContext } from './clients.ts';
import { userClaims } from './id-token.ts';
import { splitScope, userScopes } from './scopes.ts';

/** Errors of `authenticateUser` that a new token solves. */
const tokenErrors: readonly string[] = [
  ...['bad_jwt', 'session_not_found', 'session_expired', 'user_not_found', 'user_banned'],
];

/**
 * `/oauth/userinfo`: the claims of the scopes of the token. A session of the user has all.
 *
 * @see OpenID Connect Core §5.3 https://openid.net/specs/openid-connect-core-1_0.html#UserInfo
 */
export const addUserInfoRoutes: AddRoutes<OAuthContext> = (api, context) => {
  const options = { config: { oauthClients: true }, errorHandler: challenge } as const;
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    requireOAuthServer(context);
    const { user, session, claims } = await authenticateUser(request, context);
    const granted: readonly string[] = session?.client ? splitScope(session.client.scope) : userScopes;
    // A refresh can ask for a token with fewer scopes than the session has.
    const named = typeof claims.scope === 'string' ? splitScope(claims.scope) : granted;
    const scopes = new Set(granted.filter((scope) => named.includes(scope)));
    return reply.header('cache-control', 'no-store').send({
      ...userClaims(user, scopes),
      ...(scopes.has('profile') && { user_metadata: user.userMetadata }),
    });
  };
  api.get('/oauth/userinfo', options, answer);
  api.post('/oauth/userinfo', { ...options, preHandler: readFormToken }, answer);
};

/** Takes the token of a form. @see RFC 6750 §2.2 https://www.rfc-editor.org/rfc/rfc6750#section-2.2 */
async function readFormToken({ form, headers }: FastifyRequest): Promise<void> {
  const tokens = form?.getAll('access_token') ?? [];
  if (tokens.length === 0) return;
  if (tokens.length > 1 || headers.authorization !== undefined)
    throw new OAuthError('invalid_request', 'There is more than one access token');
  headers.authorization = `Bearer ${tokens[0]}`;
}

/** @see RFC 6750 §3 https://www.rfc-editor.org/rfc/rfc6750#section-3 */
function challenge(error: FastifyError, _request: FastifyRequest, reply: FastifyReply): never {
  const { code, message } = error;
  if (code === 'no_authorization') reply.header('www-authenticate', 'Bearer');
  if (!tokenErrors.includes(code)) throw error;
  reply.header('www-authenticate', 'Bearer error="invalid_token"');
  throw new OAuthError('invalid_token', message, 401);
}
