import type { JsonObject } from '@tollgate/kit/json';
import type { FastifyRequest } from 'fastify';
import { OAuthError } from '../errors.ts';
import type { Api } from '../http/api.ts';
import { keyClaims, keyOfToken } from '../keys/bound-tokens.ts';
import { issuerUrl, type JwtClaims, signJwt } from '../keys/jwt.ts';
import { detailsMember } from './authorization-details.ts';
import { clientEndpoint, type EndpointContext, presentedTokenBody, readClient } from './client-request.ts';
import type { StoredClient } from './client-store.ts';
import { clientIdentifier } from './find-client.ts';
import { findActiveToken, type PresentedToken } from './presented-token.ts';

/** @see RFC 9701 §5 https://www.rfc-editor.org/rfc/rfc9701#section-5 */
const jwtType = 'token-introspection+jwt';

/** Claims of an access token that the response has. */
const shownClaims = [
  ...['scope', 'authorization_details', 'client_id', 'sub', 'aud', 'iss', 'exp', 'iat', 'jti', 'cnf'],
] as const;

/**
 * `/oauth/introspect`: whether a token is valid now, for its own client and for the resource that
 * it is for. Others learn nothing.
 *
 * @see RFC 7662 §2 https://www.rfc-editor.org/rfc/rfc7662#section-2
 */
export function addIntrospectionRoute(api: Api, context: EndpointContext): void {
  const options = { ...clientEndpoint(context), schema: { body: presentedTokenBody } };
  api.post('/oauth/introspect', options, async (request, reply) => {
    const { token = '' } = request.body;
    const client = await readClient(context, request, request.body);
    // RFC 7662 §2.1: without authentication, anyone could try tokens.
    if (client.client_type === 'public')
      throw new OAuthError('unauthorized_client', 'A public client may not introspect tokens');
    if (token === '') throw new OAuthError('invalid_request', 'token is required');
    const found = await findActiveToken(context, { token, clientId: client.id });
    const answer = found !== undefined && mayRead(client, found) ? describe(found) : { active: false };
    if (!wantsJwt(request)) return reply.send(answer);
    const claims = {
      iss: issuerUrl(context.settings),
      aud: clientIdentifier(client),
      iat: Math.floor(context.nowMs() / 1000),
      token_introspection: answer,
    };
    return reply.type(`application/${jwtType}`).send(signJwt(claims, context.keys, jwtType));
  });
}

/** @see RFC 9701 §4 https://www.rfc-editor.org/rfc/rfc9701#section-4 */
function wantsJwt({ headers }: FastifyRequest): boolean {
  return headers.accept?.toLowerCase().includes(`application/${jwtType}`) === true;
}

function mayRead(client: StoredClient, token: PresentedToken): boolean {
  if (token.kind === 'refresh') return true;
  const { client_id: owner, aud } = token.claims;
  return (
    owner === clientIdentifier(client) ||
    audiencesOf({ aud }).some((audience) => client.audiences.includes(audience))
  );
}

function audiencesOf({ aud }: Pick<JwtClaims, 'aud'>): readonly string[] {
  return [aud].flat().filter((audience) => typeof audience === 'string');
}

function describe(token: PresentedToken): JsonObject {
  if (token.kind === 'refresh') {
    const { user, session } = token;
    return {
      active: true,
      sub: user.id,
      client_id: session.client?.identifier ?? '',
      scope: session.client?.scope ?? '',
      ...detailsMember(session.client?.details ?? []),
      ...keyClaims(session.client?.thumbprint ?? undefined),
    };
  }
  const { claims } = token;
  const shown = shownClaims.flatMap((name) => (claims[name] === undefined ? [] : [[name, claims[name]]]));
  const tokenType = keyOfToken(claims) === undefined ? 'Bearer' : 'DPoP';
  return { active: true, token_type: tokenType, ...Object.fromEntries(shown) };
}
