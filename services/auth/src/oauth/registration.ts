import { isAppError } from '@tollgate/kit/errors';
import { errors, OAuthError } from '../errors.ts';
import { type AddRoutes, body, bodyLimits } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { registeredMembers, requireOAuthServer } from './client-routes.ts';
import { anyone, createClient, type OAuthContext, toClientJson } from './clients.ts';

/** Other members of RFC 7591 are ignored, as §2 requires of unknown ones. */
const registrationBody = body(registeredMembers);

const userGrants: readonly string[] = ['authorization_code', 'refresh_token'];
const userMethods: readonly string[] = ['client_secret_basic', 'client_secret_post', 'none'];

/**
 * `/oauth/clients/register`: clients register themselves, if allowed.
 *
 * @see RFC 7591 §3 https://www.rfc-editor.org/rfc/rfc7591#section-3
 */
export const addRegistrationRoutes: AddRoutes<OAuthContext> = (api, context) => {
  const options = {
    schema: { body: registrationBody },
    config: { limiter: 'oauth_register' },
    bodyLimit: bodyLimits.contact,
    onRequest: async () => {
      requireOAuthServer(context);
      if (!context.settings.oauthServerAllowDynamicRegistration)
        throw errors.oauth_dynamic_client_registration_disabled();
    },
  } as const;
  api.post('/oauth/clients/register', options, async (request, reply) => {
    const { grant_types: grants = userGrants, token_endpoint_auth_method: method } = request.body;
    if (!grants.every((grant) => userGrants.includes(grant)))
      throw invalidMetadata(`grant_types must only contain ${userGrants.join(', ')}`);
    if (method !== undefined && !userMethods.includes(method))
      throw invalidMetadata(`token_endpoint_auth_method must be one of: ${userMethods.join(', ')}`);
    const registration = {
      actor: anyone,
      metadata: requestMetadata(request, context),
      registrationType: 'dynamic',
    } as const;
    const { client, secret } = await createClient(context, request.body, registration).catch(rethrow);
    return reply
      .code(201)
      .header('cache-control', 'no-store')
      .send({
        ...toClientJson(client, secret),
        client_id_issued_at: Math.floor(client.created_at.getTime() / 1000),
        // It does not expire.
        ...(secret !== undefined && { client_secret_expires_at: 0 }),
      });
  });
};

/** @see RFC 7591 §3.2.2 */
function rethrow(error: unknown): never {
  if (!isAppError(error) || error.code !== 'validation_failed') throw error;
  if (!error.message.includes('redirect_uri')) throw invalidMetadata(error.message);
  throw new OAuthError('invalid_redirect_uri', error.message);
}

function invalidMetadata(message: string): OAuthError {
  return new OAuthError('invalid_client_metadata', message);
}
