import { jwksMaxAgeSeconds } from '@tollgate/kit/signing-keys';
import type { AddRoutes } from '../http/api.ts';
import type { Context } from './context.ts';

/** @see RFC 7517 §5 https://www.rfc-editor.org/rfc/rfc7517#section-5 */
export const addKeyRoutes: AddRoutes<Context> = (api, { keys }) => {
  const cacheControl = `public, max-age=${jwksMaxAgeSeconds}`;
  // Keys may change while the server runs.
  const jwks = () => ({ keys: [...keys.byKid.values()].flatMap(({ publicJwk }) => publicJwk ?? []) });
  api.get('/.well-known/jwks.json', (_request, reply) =>
    reply.header('cache-control', cacheControl).send(jwks()),
  );
};
