import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AddRoutes } from '../http/api.ts';
import { authenticateUser } from '../sessions/authenticate.ts';
import { requireOAuthServer } from './client-routes.ts';
import type { OAuthContext } from './clients.ts';
import { userClaims } from './id-token.ts';
import { splitScope, userScopes } from './scopes.ts';

/**
 * `/oauth/userinfo`: the claims of the scopes of the token. A session of the user has all.
 *
 * @see OpenID Connect Core §5.3 https://openid.net/specs/openid-connect-core-1_0.html#UserInfo
 */
export const addUserInfoRoutes: AddRoutes<OAuthContext> = (api, context) => {
  const options = { config: { oauthClients: true } } as const;
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
  api.post('/oauth/userinfo', options, answer);
};
