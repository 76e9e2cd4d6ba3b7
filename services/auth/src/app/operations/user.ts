import { forUser, type Operations } from './operation.ts';

export const userOperations: Operations = {
  'GET /user': { id: 'getUser', ...forUser, summary: 'Get the user', response: 'User' },
  'PUT /user': {
    id: 'updateUser',
    ...forUser,
    summary: 'Change email, phone, password or metadata of the user',
    response: 'User',
    example: ['data'],
  },
  'GET /user/identities': {
    id: 'listIdentities',
    ...forUser,
    summary: 'List the identities of the user',
    response: 'IdentityList',
  },
  'GET /user/identities/authorize': {
    id: 'linkIdentity',
    ...forUser,
    summary: 'Link an identity: returns the URL to open with `skip_http_redirect=true`, or redirects to it',
    response: 'ProviderUrl',
  },
  'DELETE /user/identities/{identity_id}': {
    id: 'unlinkIdentity',
    ...forUser,
    summary: 'Unlink an identity',
    response: 'Empty',
  },
  'GET /reauthenticate': {
    id: 'sendReauthenticationNonce',
    ...forUser,
    summary: 'Send a nonce that confirms the session',
    response: 'SentMessage',
  },
  'POST /reauthenticate': {
    id: 'reauthenticate',
    ...forUser,
    summary:
      'Confirm the session with the current password or a nonce, before a change that requires a recent sign-in',
    response: 'Empty',
  },
  'POST /logout': {
    id: 'signOut',
    ...forUser,
    summary: 'End sessions: `global`, `local` or `others`',
    status: 204,
  },
  'GET /user/sessions': {
    id: 'listSessions',
    ...forUser,
    summary: 'List the sessions of the user',
    response: 'SessionList',
  },
  'DELETE /user/sessions': {
    id: 'endSessions',
    ...forUser,
    summary: 'End sessions of the user, as /logout',
    response: 'Empty',
  },
  'DELETE /user/sessions/{session_id}': {
    id: 'endSession',
    ...forUser,
    summary: 'End a session of the user',
    response: 'Empty',
  },
  'GET /user/api-keys': {
    id: 'listApiKeys',
    ...forUser,
    summary: 'List the API keys of the user',
    response: 'OwnApiKeyList',
  },
  'POST /user/api-keys': {
    id: 'createApiKey',
    ...forUser,
    summary: 'Create an API key of the user',
    response: 'CreatedOwnApiKey',
    status: 201,
    example: ['name', 'scopes'],
  },
  'GET /user/api-keys/{key_id}': {
    id: 'getApiKey',
    ...forUser,
    summary: 'Get an API key of the user',
    response: 'OwnApiKey',
  },
  'PATCH /user/api-keys/{key_id}': {
    id: 'updateApiKey',
    ...forUser,
    summary: 'Change an API key of the user. An empty text or list removes the value',
    response: 'OwnApiKey',
    example: ['disabled'],
  },
  'DELETE /user/api-keys/{key_id}': {
    id: 'revokeApiKey',
    ...forUser,
    summary: 'Revoke an API key of the user',
    status: 204,
  },
  'POST /user/api-keys/{key_id}/rotate': {
    id: 'rotateApiKey',
    ...forUser,
    summary: 'Replace an API key of the user. The old one is valid for `grace`',
    response: 'CreatedOwnApiKey',
    status: 201,
  },
};
