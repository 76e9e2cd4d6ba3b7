import type { AddRoutes } from '../api.ts';

/** Public keys of access tokens. @see RFC 7517 §5 https://www.rfc-editor.org/rfc/rfc7517#section-5 */
export const addKeyRoutes: AddRoutes = (api, { keys }) => {
  // Made anew each time: keys change while the server runs.
  const jwks = () => ({ keys: [...keys.byKid.values()].flatMap(({ publicJwk }) => publicJwk ?? []) });
  api.get('/.well-known/jwks.json', (_request, reply) =>
    reply.header('cache-control', 'public, max-age=600').send(jwks()),
  );
};
