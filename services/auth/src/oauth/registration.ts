import { isAppError } from '@tollgate/kit/errors';
import { type Static, Type } from 'typebox';
import type { Settings } from '../config/settings.ts';
import { errors, OAuthError } from '../errors.ts';
import { type AddRoutes, body, bodyLimits, optionalObject, optionalText } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { commonDetailsTypes } from './authorization-details.ts';
import { type ClientInput, defaultGrants } from './client-input.ts';
import { registeredMembers, requireOAuthServer, toInput } from './client-routes.ts';
import { anyone, createClient, type OAuthContext, toClientJson } from './clients.ts';
import { openGrants } from './grant.ts';
import { commonScopes, splitScope } from './scopes.ts';

/** Members that are not stored. Others of RFC 7591 are ignored, as §2 requires of unknown ones. */
const checkedMembers = {
  response_types: Type.Optional(Type.Array(Type.String())),
  subject_type: optionalText,
  id_token_signed_response_alg: optionalText,
  id_token_encrypted_response_alg: optionalText,
  userinfo_signed_response_alg: optionalText,
  userinfo_encrypted_response_alg: optionalText,
  sector_identifier_uri: optionalText,
};

const registrationBody = body({
  ...registeredMembers,
  ...checkedMembers,
  jwks: optionalObject,
  jwks_uri: optionalText,
});

type Registration = Static<typeof registrationBody>;

/** A client must not rely on a protection that it does not get. */
const unsupported = [
  'id_token_encrypted_response_alg',
  'userinfo_signed_response_alg',
  'userinfo_encrypted_response_alg',
  'sector_identifier_uri',
] as const;

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
    checkRegistration(context, request.body);
    const registration = {
      actor: anyone,
      metadata: requestMetadata(request, context),
      registrationType: 'dynamic',
    } as const;
    const { client, secret } = await createClient(
      context,
      readRegistration(request.body, context.settings),
      registration,
    ).catch(rethrow);
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

/** @see RFC 7591 §2, OpenID Connect Dynamic Client Registration §2 */
function checkRegistration({ keys }: OAuthContext, registration: Registration): void {
  const { grant_types: grants = defaultGrants, response_types: types = ['code'] } = registration;
  const { subject_type: subject = 'public', id_token_signed_response_alg: alg } = registration;
  if (!grants.every((grant) => openGrants.includes(grant)))
    throw invalidMetadata(`grant_types must only contain ${openGrants.join(', ')}`);
  if (!types.every((type) => type === 'code')) throw invalidMetadata('response_types must only contain code');
  if (subject !== 'public') throw invalidMetadata('subject_type must be public');
  if (alg !== undefined && alg !== keys.current.alg)
    throw invalidMetadata(`id_token_signed_response_alg must be ${keys.current.alg}`);
  const refused = unsupported.find((name) => registration[name] !== undefined);
  if (refused !== undefined) throw invalidMetadata(`${refused} is not supported`);
}

/**
 * Only `private_key_jwt` uses keys. Unknown scopes and types of authorization details are dropped,
 * as RFC 7591 §2 allows.
 */
function readRegistration(registration: Registration, settings: Settings): ClientInput {
  const { jwks, jwks_uri: uri, scope, authorization_details_types: types, ...members } = registration;
  const usesKeys = members.token_endpoint_auth_method === 'private_key_jwt';
  const known = scope === undefined ? undefined : knownScope(scope, settings);
  const input = {
    ...members,
    ...(usesKeys && { jwks, jwks_uri: uri }),
    ...(known !== undefined && { scope: known }),
    ...(types !== undefined && { authorization_details_types: knownTypes(types, settings) }),
  };
  return toInput(input, registrationBody);
}

function knownScope(scope: string, settings: Settings): string {
  const common = commonScopes(settings);
  const known = splitScope(scope).filter((name) => common.includes(name));
  if (known.length === 0) throw invalidMetadata('scope has no scope that clients may ask for');
  return known.join(' ');
}

function knownTypes(types: readonly string[], settings: Settings): string[] {
  const common = commonDetailsTypes(settings);
  const known = types.filter((type) => common.includes(type));
  if (known.length === 0)
    throw invalidMetadata('authorization_details_types has no type that clients may ask for');
  return known;
}

/** @see RFC 7591 §3.2.2 */
function rethrow(error: unknown): never {
  if (!isAppError(error) || error.code !== 'validation_failed') throw error;
  if (!/^(?:invalid )?redirect_uri/.test(error.message)) throw invalidMetadata(error.message);
  throw new OAuthError('invalid_redirect_uri', error.message);
}

function invalidMetadata(message: string): OAuthError {
  return new OAuthError('invalid_client_metadata', message);
}
