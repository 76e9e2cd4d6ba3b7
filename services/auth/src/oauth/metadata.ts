import type { AddRoutes } from '../http/api.ts';
import { algorithmNames } from '../issuers/algorithms.ts';
import { issuerUrl } from '../keys/jwt.ts';
import { jwksMaxAgeSeconds } from '../keys/key-source.ts';
import { tokenEndpoint } from './client-assertion.ts';
import { requireOAuthServer } from './client-routes.ts';
import type { OAuthContext } from './clients.ts';
import { servedGrants } from './token.ts';

/**
 * The metadata of the authorization server. Without the OAuth server, resource servers find only
 * the keys there.
 *
 * @see RFC 8414 §3 https://www.rfc-editor.org/rfc/rfc8414#section-3
 */
export const addMetadataRoutes: AddRoutes<OAuthContext> = (api, context) => {
  const { settings, keys } = context;
  const cacheControl = `public, max-age=${jwksMaxAgeSeconds}`;
  const base = settings.apiExternalUrl.replace(/\/+$/, '');
  // Keys may change while the server runs.
  const metadata = () => ({
    issuer: issuerUrl(settings),
    jwks_uri: `${base}/.well-known/jwks.json`,
    ...(settings.oauthServerEnabled && {
      token_endpoint: tokenEndpoint(settings),
      grant_types_supported: servedGrants,
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
      token_endpoint_auth_signing_alg_values_supported: algorithmNames,
    }),
    response_types_supported: [],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...keys.algorithms],
  });
  api.get('/.well-known/openid-configuration', (_request, reply) =>
    reply.header('cache-control', cacheControl).send(metadata()),
  );
  api.get('/.well-known/oauth-authorization-server', (_request, reply) => {
    requireOAuthServer(context);
    return reply.header('cache-control', cacheControl).send(metadata());
  });
};
