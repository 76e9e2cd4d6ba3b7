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
  pageQuery,
  parsePage,
  setPageHeaders,
  uuidParameter,
} from '../http/api.ts';
import { readAdminRequest } from '../sessions/admin-request.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import type { ClientInput } from './client-input.ts';
import { adminMembers, type ClientMetadata, metadataMembers, metadataNames } from './client-metadata.ts';
import {
  createClient,
  deleteClient,
  getClient,
  type OAuthContext,
  regenerateSecret,
  toClientJson,
  updateClient,
} from './clients.ts';

/** Members of clients that administrators, and clients which register themselves, set. */
export const registeredMembers = {
  redirect_uris: optionalTexts,
  grant_types: optionalTexts,
  client_type: optionalText,
  token_endpoint_auth_method: optionalText,
  client_name: optionalText,
  client_uri: optionalText,
  logo_uri: optionalText,
  ...metadataMembers,
};

const clientBody = body({
  ...registeredMembers,
  ...adminMembers,
  jwks: optionalObject,
  jwks_uri: optionalText,
  scopes: optionalTexts,
  audiences: optionalTexts,
  plan: optionalText,
  role: optionalText,
  limit: optionalObject,
  org_id: optionalText,
  disabled: optionalFlag,
});
const params = Type.Object({ client_id: Type.String() });
const listQuery = Type.Object(pageQuery);
/** GoTrue lists all clients; responses are built in memory. */
const maxClients = '1000';

/** `/admin/oauth/clients` */
export const addOAuthClientRoutes: AddRoutes<OAuthContext> = (api, context) => {
  const path = '/admin/oauth/clients';
  const bodyLimit = bodyLimits.contact;

  api.get(path, { schema: { querystring: listQuery } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    requireOAuthServer(context);
    const { page: number = '', per_page: perPage = '' } = request.query;
    const page = parsePage({ page: number, per_page: perPage || maxClients });
    const { items, total } = await context.store.oauthClients.list(page);
    setPageHeaders(request, reply, { page, total });
    return reply.send({ clients: items.map((client) => toClientJson(client)) });
  });

  api.post(path, { schema: { body: clientBody }, bodyLimit }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireOAuthServer(context);
    const { client, secret } = await createClient(context, toInput(request.body, clientBody), adminRequest);
    return reply.code(201).header('cache-control', 'no-store').send(toClientJson(client, secret));
  });

  const one = `${path}/:client_id`;
  api.get(one, { schema: { params } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    requireOAuthServer(context);
    return reply.send(toClientJson(await getClient(context, clientId(request.params))));
  });

  api.put(one, { schema: { params, body: clientBody }, bodyLimit }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireOAuthServer(context);
    const update = { input: toInput(request.body, clientBody), request: adminRequest };
    return reply.send(toClientJson(await updateClient(context, clientId(request.params), update)));
  });

  api.delete(one, { schema: { params } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireOAuthServer(context);
    await deleteClient(context, clientId(request.params), adminRequest);
    return reply.code(204).send();
  });

  api.post(`${one}/regenerate_secret`, { schema: { params } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireOAuthServer(context);
    const { client, secret } = await regenerateSecret(context, clientId(request.params), adminRequest);
    return reply.header('cache-control', 'no-store').send(toClientJson(client, secret));
  });
};

/** @throws AppError `feature_disabled` */
export function requireOAuthServer({ settings }: Pick<OAuthContext, 'settings'>): void {
  if (settings.oauthServerEnabled) return;
  throw errors.feature_disabled({
    message: `The OAuth server is disabled: set ${settingsSpec.oauthServerEnabled.env}`,
    httpStatus: 404,
  });
}

/** @throws AppError `validation_failed` */
function clientId(parameters: { readonly client_id: string }): string {
  return uuidParameter(parameters, 'client_id');
}

/** Members of bodies as they are sent. */
type GivenMembers = Omit<ClientInput, 'jwks' | 'limit' | 'metadata'> &
  ClientMetadata & { readonly jwks?: unknown; readonly limit?: unknown };

/** Members outside of the schema do not count: some are for administrators only. */
export function toInput(body: GivenMembers, { properties }: { readonly properties: object }): ClientInput {
  const given: GivenMembers = Object.fromEntries(
    Object.entries(body).filter(([name]) => Object.hasOwn(properties, name)),
  );
  const metadata = mergeable(given);
  // Objects are parsed from JSON.
  return {
    ...given,
    ...(Object.keys(metadata).length > 0 && { metadata }),
    jwks: given.jwks as JsonObject | undefined,
    limit: given.limit as JsonObject | undefined,
  };
}

/** The members of the metadata, also empty ones, which remove them. */
function mergeable(given: ClientMetadata): ClientMetadata {
  return Object.fromEntries(Object.entries(given).filter(([name]) => metadataNames.includes(name)));
}
