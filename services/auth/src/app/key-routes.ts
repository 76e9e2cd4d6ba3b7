import type { AddRoutes } from '../http/api.ts';
import { jwksMaxAgeSeconds } from '../keys/key-source.ts';
import type { Context } from './context.ts';

/** @see RFC 7517 §5 https://www.rfc-editor.org/rfc/rfc7517#section-5 */
export const addKeyRoutes: AddRoutes<Context> = (api, { keys, settings }) => {
  const cacheControl = `public, max-age=${jwksMaxAgeSeconds}`;
  // Keys may change while the server runs.
  const jwks = () => ({ keys: [...keys.byKid.values()].flatMap(({ publicJwk }) => publicJwk ?? []) });
  api.get('/.well-known/jwks.json', (_request, reply) =>
    reply.header('cache-control', cacheControl).send(jwks()),
  );
  const base = settings.apiExternalUrl.replace(/\/+$/, '');
  /** Without the endpoints of an authorization server: resource servers look for the keys here. */
  const metadata = () => ({
    issuer: settings.jwtIssuer || base,
    jwks_uri: `${base}/.well-known/jwks.json`,
    response_types_supported: [],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...keys.algorithms],
  });
  api.get('/.well-known/openid-configuration', (_request, reply) =>
    reply.header('cache-control', cacheControl).send(metadata()),
  );
};
