import { forAdmin, type Operations } from './operation.ts';

export const adminClientsOperations: Operations = {
  'GET /admin/oauth/clients': {
    id: 'adminListOAuthClients',
    ...forAdmin('clients:write'),
    summary: 'List OAuth clients, newest first',
    response: 'OAuthClientList',
  },
  'POST /admin/oauth/clients': {
    id: 'adminCreateOAuthClient',
    ...forAdmin('clients:write'),
    summary: 'Create an OAuth client. The secret is shown once',
    response: 'OAuthClient',
    status: 201,
    example: ['client_name', 'redirect_uris', 'client_type'],
  },
  'GET /admin/oauth/clients/{client_id}': {
    id: 'adminGetOAuthClient',
    ...forAdmin('clients:write'),
    summary: 'Get an OAuth client',
    response: 'OAuthClient',
  },
  'PUT /admin/oauth/clients/{client_id}': {
    id: 'adminUpdateOAuthClient',
    ...forAdmin('clients:write'),
    summary: 'Change the given members of an OAuth client. Empty values remove optional members',
    response: 'OAuthClient',
    example: ['redirect_uris'],
  },
  'DELETE /admin/oauth/clients/{client_id}': {
    id: 'adminDeleteOAuthClient',
    ...forAdmin('clients:write'),
    summary: 'Delete an OAuth client, and end its tokens',
    status: 204,
  },
  'POST /admin/oauth/clients/{client_id}/regenerate_secret': {
    id: 'adminRegenerateOAuthClientSecret',
    ...forAdmin('clients:write'),
    summary: 'Replace the secret of an OAuth client, and end its tokens',
    response: 'OAuthClient',
  },
  'GET /admin/issuers': {
    id: 'adminListIssuers',
    ...forAdmin('policies:read'),
    summary: 'List other token issuers that the gateway accepts, with the state of their keys',
    response: 'TokenIssuerList',
  },
  'GET /admin/custom-providers': {
    id: 'adminListProviders',
    ...forAdmin('providers:write'),
    summary: 'List custom identity providers',
    response: 'CustomProviderList',
  },
  'POST /admin/custom-providers': {
    id: 'adminCreateProvider',
    ...forAdmin('providers:write'),
    summary: 'Add an identity provider, by OpenID Connect discovery or OAuth 2.0',
    response: 'CustomProvider',
    status: 201,
    example: ['provider_type', 'identifier', 'name', 'client_id', 'client_secret', 'issuer'],
  },
  'GET /admin/custom-providers/{identifier}': {
    id: 'adminGetProvider',
    ...forAdmin('providers:write'),
    summary: 'Get a custom identity provider',
    response: 'CustomProvider',
  },
  'PUT /admin/custom-providers/{identifier}': {
    id: 'adminUpdateProvider',
    ...forAdmin('providers:write'),
    summary: 'Change a custom identity provider',
    response: 'CustomProvider',
    example: ['enabled'],
  },
  'POST /admin/custom-providers/{identifier}/check': {
    id: 'adminCheckProvider',
    ...forAdmin('providers:write'),
    summary: 'Check a custom identity provider, with its discovery document now. Changes nothing',
    response: 'CustomProviderCheck',
  },
  'DELETE /admin/custom-providers/{identifier}': {
    id: 'adminDeleteProvider',
    ...forAdmin('providers:write'),
    summary: 'Delete a custom identity provider',
    status: 204,
  },
};
