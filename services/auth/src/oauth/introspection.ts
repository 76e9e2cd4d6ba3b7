import type { JsonObject } from '@tollgate/kit/json';
import { OAuthError } from '../errors.ts';
import type { Api } from '../http/api.ts';
import type { JwtClaims } from '../keys/jwt.ts';
import { clientEndpoint, type EndpointContext, presentedTokenBody, readClient } from './client-request.ts';
import type { StoredClient } from './client-store.ts';
import { clientIdentifier } from './find-client.ts';
import { findToken, type PresentedToken } from './presented-token.ts';

/** Claims of an access token that the response has. */
const shownClaims = ['scope', 'client_id', 'sub', 'aud', 'iss', 'exp', 'iat', 'jti'] as const;

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
    const found = await findToken(context, { token, clientId: client.id });
    return reply.send(found !== undefined && mayRead(client, found) ? describe(found) : { active: false });
  });
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
    };
  }
  const { claims } = token;
  const shown = shownClaims.flatMap((name) => (claims[name] === undefined ? [] : [[name, claims[name]]]));
  return { active: true, token_type: 'Bearer', ...Object.fromEntries(shown) };
}
