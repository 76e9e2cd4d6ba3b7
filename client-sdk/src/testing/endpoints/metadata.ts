import { grants } from '../grants.ts';
import type { ServerContext } from '../server-context.ts';

/** Where each endpoint of the server is, below its issuer. */
export const endpointPaths = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  revocation: '/oauth/revoke',
  introspection: '/oauth/introspect',
  deviceAuthorization: '/oauth/device_authorization',
  jwks: '/jwks',
  resource: '/resource',
} as const;

/** Name of an endpoint, as faults and recorded requests use it; `metadata` is the two well-known documents. */
export type EndpointName = keyof typeof endpointPaths | 'metadata';

/**
 * The server's metadata, for RFC 8414 and OpenID Connect Discovery alike.
 *
 * @see RFC 8414 §3.2 https://www.rfc-editor.org/rfc/rfc8414#section-3.2
 */
export function metadataEndpoint({ settings: { issuer } }: ServerContext): Response {
  return Response.json({
    issuer,
    authorization_endpoint: issuer + endpointPaths.authorization,
    token_endpoint: issuer + endpointPaths.token,
    revocation_endpoint: issuer + endpointPaths.revocation,
    introspection_endpoint: issuer + endpointPaths.introspection,
    device_authorization_endpoint: issuer + endpointPaths.deviceAuthorization,
    jwks_uri: issuer + endpointPaths.jwks,
    response_types_supported: ['code', 'token'],
    grant_types_supported: [...grants.keys(), 'implicit'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    code_challenge_methods_supported: ['S256', 'plain'],
    token_endpoint_auth_methods_supported: [
      ...['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'client_secret_jwt', 'none'],
    ],
    authorization_response_iss_parameter_supported: true,
  });
}
