import { jwksMaxAgeSeconds } from '@tollgate/kit/signing-keys';
import { algorithmNames } from '@tollgate/policies/routes-file/algorithms';
import { proofAlgorithms } from '../dpop/proof.ts';
import type { AddRoutes } from '../http/api.ts';
import { builtInTexts } from '../i18n/texts/texts.ts';
import { issuerUrl } from '../keys/jwt.ts';
import { hasHostedPage, promptValues } from './authorization-request.ts';
import { responseModes } from './authorization-response.ts';
import { tokenEndpoint } from './client-assertion.ts';
import { acrValues } from './client-metadata.ts';
import { requireOAuthServer } from './client-routes.ts';
import { authMethods } from './client-store.ts';
import type { OAuthContext } from './clients.ts';
import { devicePath, servesDevices } from './device-authorization.ts';
import { claimNames } from './id-token.ts';
import { pushedPath } from './pushed-request.ts';
import { userScopes } from './scopes.ts';
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
  const isHosted = hasHostedPage(settings);
  const base = settings.apiExternalUrl.replace(/\/+$/, '');
  // Keys may change while the server runs.
  const metadata = () => ({
    issuer: issuerUrl(settings),
    jwks_uri: `${base}/.well-known/jwks.json`,
    ...(settings.oauthServerEnabled && {
      authorization_endpoint: `${base}/oauth/authorize`,
      token_endpoint: tokenEndpoint(settings),
      ...(settings.oauthServerAllowDynamicRegistration && {
        registration_endpoint: `${base}/oauth/clients/register`,
      }),
      client_id_metadata_document_supported: settings.oauthServerAllowDocuments,
      ...(servesDevices(settings) && { device_authorization_endpoint: `${base}${devicePath}` }),
      pushed_authorization_request_endpoint: `${base}${pushedPath}`,
      require_pushed_authorization_requests: settings.oauthServerRequirePushedRequests,
      userinfo_endpoint: `${base}/oauth/userinfo`,
      revocation_endpoint: `${base}/oauth/revoke`,
      introspection_endpoint: `${base}/oauth/introspect`,
      introspection_signing_alg_values_supported: [...keys.algorithms],
      revocation_endpoint_auth_methods_supported: authMethods,
      revocation_endpoint_auth_signing_alg_values_supported: algorithmNames,
      introspection_endpoint_auth_methods_supported: authMethods.filter((method) => method !== 'none'),
      introspection_endpoint_auth_signing_alg_values_supported: algorithmNames,
      ...(settings.oauthServerDetailsTypes.length > 0 && {
        authorization_details_types_supported: settings.oauthServerDetailsTypes.map(({ name }) => name),
      }),
      scopes_supported: [...userScopes, ...settings.oauthServerScopes.map(({ name }) => name)],
      claims_supported: claimNames,
      response_modes_supported: isHosted ? responseModes : ['query'],
      claims_parameter_supported: false,
      request_parameter_supported: false,
      // Its default is true.
      request_uri_parameter_supported: false,
      acr_values_supported: acrValues,
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
      ...(isHosted && {
        end_session_endpoint: `${base}/oauth/logout`,
        prompt_values_supported: promptValues,
        ui_locales_supported: Object.keys(builtInTexts),
      }),
      code_challenge_methods_supported: ['S256', 'plain'],
      authorization_response_iss_parameter_supported: true,
      grant_types_supported: servedGrants(settings),
      dpop_signing_alg_values_supported: proofAlgorithms,
      token_endpoint_auth_methods_supported: authMethods,
      token_endpoint_auth_signing_alg_values_supported: algorithmNames,
    }),
    response_types_supported: settings.oauthServerEnabled ? ['code'] : [],
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
