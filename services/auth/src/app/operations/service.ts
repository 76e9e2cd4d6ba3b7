import { forAdmin, type Operations } from './operation.ts';

export const serviceOperations: Operations = {
  'GET /health': { id: 'getHealth', summary: 'Name and version of the server', response: 'Health' },
  'GET /ready': {
    id: 'getReadiness',
    summary:
      'Readiness: 200, or 503 if the database is unavailable or read-only. `missing_indexes` names indexes that are being made',
    response: 'Readiness',
  },
  'GET /settings': { id: 'getSettings', summary: 'Enabled features', response: 'Settings' },
  'GET /admin/settings': {
    id: 'adminGetSettings',
    ...forAdmin('settings:read'),
    summary: 'All settings in force, without secrets, and the warnings of the start, of this replica',
    response: 'ServiceSettings',
  },
  'GET /admin/signing-keys': {
    id: 'adminListSigningKeys',
    ...forAdmin('settings:read'),
    summary: 'The signing keys of this replica, without the keys themselves, and the next step of a rotation',
    response: 'SigningKeys',
  },
  'GET /openapi.json': { id: 'getOpenApiDocument', summary: 'This document', response: 'Document' },
  'GET /.well-known/jwks.json': {
    id: 'getKeySet',
    summary: 'Public keys of access tokens (RFC 7517)',
    response: 'KeySet',
  },
  'GET /.well-known/openid-configuration': {
    id: 'getOpenIdConfiguration',
    summary: 'Issuer of access tokens and where its keys are (OpenID Connect Discovery)',
    response: 'OpenIdConfiguration',
  },
};
