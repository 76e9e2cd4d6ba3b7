import { forAdmin, type Operations } from './operation.ts';

export const adminApiKeysOperations: Operations = {
  'GET /admin/api-keys': {
    id: 'adminListApiKeys',
    ...forAdmin('keys:write'),
    summary: 'List API keys, newest first',
    response: 'ApiKeyList',
  },
  'POST /admin/api-keys': {
    id: 'adminCreateApiKey',
    ...forAdmin('keys:write'),
    summary: 'Create an API key of a user, an organisation or a machine',
    response: 'CreatedApiKey',
    status: 201,
    example: ['name', 'admin_scopes'],
  },
  'POST /admin/api-keys/verify': {
    id: 'adminVerifyApiKey',
    ...forAdmin('keys:verify'),
    summary: 'Check an API key, as ext_authz does',
    response: 'VerifiedApiKey',
  },
  'POST /admin/credentials/verify': {
    id: 'adminVerifyCredential',
    ...forAdmin('keys:verify'),
    summary: 'Check an API key or access token of an administrator, which another service has received',
    response: 'VerifiedCredential',
  },
  'POST /admin/api-keys/import': {
    id: 'adminImportApiKeys',
    ...forAdmin('keys:write'),
    summary:
      'Import SHA-256 digests of API keys from NDJSON, at most 10,000. Digests that are present are skipped',
    response: 'ImportResult',
    bodyType: 'application/x-ndjson',
  },
  'GET /admin/api-keys/{key_id}': {
    id: 'adminGetApiKey',
    ...forAdmin('keys:write'),
    summary: 'Get an API key',
    response: 'ApiKey',
  },
  'PUT /admin/api-keys/{key_id}': {
    id: 'adminUpdateApiKey',
    ...forAdmin('keys:write'),
    summary: 'Change an API key. An empty text, list or object removes the value',
    response: 'ApiKey',
    example: ['plan', 'limit'],
  },
  'DELETE /admin/api-keys/{key_id}': {
    id: 'adminRevokeApiKey',
    ...forAdmin('keys:write'),
    summary: 'Revoke an API key',
    status: 204,
  },
  'POST /admin/api-keys/{key_id}/rotate': {
    id: 'adminRotateApiKey',
    ...forAdmin('keys:write'),
    summary: 'Replace an API key. The old one is valid for `grace`',
    response: 'CreatedApiKey',
    status: 201,
  },
};
