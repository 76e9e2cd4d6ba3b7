import type { JsonObject } from '@tollgate/kit/json';
import { Type } from 'typebox';
import { settingsSpec } from '../config/settings.ts';
import { errors } from '../errors.ts';
import {
  type AddRoutes,
  body,
  bodyLimits,
  optionalFlag,
  optionalObject,
  optionalText,
  optionalTexts,
} from '../http/api.ts';
import { readAdminRequest } from '../sessions/admin-request.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import type { ProvidersContext } from './connections.ts';
import {
  checkStoredProvider,
  createProvider,
  deleteProvider,
  getProvider,
  type ProviderInput,
  toProviderJson,
  updateProvider,
} from './custom-admin.ts';

const providerBody = body({
  provider_type: optionalText,
  identifier: optionalText,
  name: optionalText,
  client_id: optionalText,
  client_secret: optionalText,
  acceptable_client_ids: optionalTexts,
  scopes: optionalTexts,
  pkce_enabled: optionalFlag,
  attribute_mapping: optionalObject,
  custom_claims_allowlist: optionalTexts,
  authorization_params: optionalObject,
  enabled: optionalFlag,
  email_optional: optionalFlag,
  issuer: optionalText,
  discovery_url: optionalText,
  skip_nonce_check: optionalFlag,
  authorization_url: optionalText,
  token_url: optionalText,
  userinfo_url: optionalText,
  jwks_uri: optionalText,
});
const params = Type.Object({ identifier: Type.String() });
const listQuery = Type.Object({
  type: Type.Optional(Type.String({ description: '`oauth2` or `oidc`. Default: both.' })),
});

/** `/admin/custom-providers` */
export const addCustomProviderRoutes: AddRoutes<ProvidersContext> = (api, context) => {
  const path = '/admin/custom-providers';
  const bodyLimit = bodyLimits.contact;

  api.get(path, { schema: { querystring: listQuery } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    requireCustomProviders(context);
    const { type = '' } = request.query;
    if (type !== '' && type !== 'oauth2' && type !== 'oidc')
      throw errors.validation_failed({ message: "type must be either 'oauth2' or 'oidc'" });
    const providers = await context.store.customProviders.list(type === '' ? undefined : type);
    return reply.send({ providers: providers.map(toProviderJson) });
  });

  api.post(path, { schema: { body: providerBody }, bodyLimit }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireCustomProviders(context);
    const provider = await createProvider(context, toInput(request.body), adminRequest);
    return reply.code(201).send(toProviderJson(provider));
  });

  const one = `${path}/:identifier`;
  api.get(one, { schema: { params } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    requireCustomProviders(context);
    return reply.send(toProviderJson(await getProvider(context, request.params.identifier)));
  });

  api.put(one, { schema: { params, body: providerBody }, bodyLimit }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireCustomProviders(context);
    const update = { input: toInput(request.body), request: adminRequest };
    return reply.send(toProviderJson(await updateProvider(context, request.params.identifier, update)));
  });

  api.post(`${one}/check`, { schema: { params } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireCustomProviders(context);
    return reply.send(await checkStoredProvider(context, request.params.identifier, adminRequest));
  });

  api.delete(one, { schema: { params } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireCustomProviders(context);
    await deleteProvider(context, request.params.identifier, adminRequest);
    return reply.code(204).send();
  });
};

/** @throws AppError `feature_disabled` */
function requireCustomProviders({ settings }: ProvidersContext): void {
  if (settings.customOauthEnabled) return;
  throw errors.feature_disabled({
    message: `Custom OAuth/OIDC providers are not enabled: set ${settingsSpec.customOauthEnabled.env}`,
    httpStatus: 404,
  });
}

function toInput(
  given: Omit<ProviderInput, 'attribute_mapping' | 'authorization_params'> & {
    readonly attribute_mapping?: unknown;
    readonly authorization_params?: unknown;
  },
): ProviderInput {
  // Objects are parsed from JSON.
  return {
    ...given,
    attribute_mapping: given.attribute_mapping as JsonObject | undefined,
    authorization_params: given.authorization_params as JsonObject | undefined,
  };
}
