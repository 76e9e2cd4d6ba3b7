import type { ClientMetadata } from 'oidc-provider';
import { Client, type ClientOptions } from '../../../../src/index.ts';
import { redirectUri } from './clients.ts';

/** Where `oidc-provider` serves what, as options of a Client. */
const endpoints = {
  authorizationEndpoint: '/auth',
  tokenEndpoint: '/token',
  revocationEndpoint: '/token/revocation',
  introspectionEndpoint: '/token/introspection',
  deviceAuthorizationEndpoint: '/device/auth',
  pushedAuthorizationRequestEndpoint: '/request',
} satisfies ClientOptions;

/** Makes our client of a client that is registered at the provider. */
export function clientOf(
  { issuer }: { readonly issuer: string },
  { client_id: clientId, client_secret: clientSecret }: ClientMetadata,
  options: ClientOptions<true> = {},
): Client<true> {
  return new Client({
    clientId,
    ...(clientSecret === undefined ? { clientAuth: 'none' } : { clientSecret }),
    ...{ site: issuer, issuer, redirectUri },
    ...{ jwksUri: `${issuer}/jwks`, idTokenSignedResponseAlg: 'ES256' },
    ...endpoints,
    ...options,
  });
}
