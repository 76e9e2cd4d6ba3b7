import { forAdmin, type Operations } from './operation.ts';

export const adminUsersOperations: Operations = {
  'POST /invite': {
    id: 'adminInviteUser',
    ...forAdmin('users:write'),
    summary: 'Invite a user by email',
    response: 'User',
    example: ['email', 'redirect_to'],
  },
  'GET /admin/users': {
    id: 'adminListUsers',
    ...forAdmin('users:read'),
    summary:
      'List users, by page (`X-Total-Count`, `Link`) or by cursor (`pagination`, `Link`). Cursors are for large lists: their cost does not depend on the position',
    response: 'UserList',
  },
  'POST /admin/users': {
    id: 'adminCreateUser',
    ...forAdmin('users:write'),
    summary: 'Create a user',
    response: 'User',
    example: ['email', 'password', 'email_confirm', 'user_metadata'],
  },
  'POST /admin/users/import': {
    id: 'adminImportUsers',
    ...forAdmin('users:write'),
    summary:
      'Import users: one JSON object per line, at most 10,000. Users that are present are skipped. Returns counts, and `errors` with line numbers',
    response: 'ImportResult',
    bodyType: 'application/x-ndjson',
  },
  'GET /admin/users/{user_id}': {
    id: 'adminGetUser',
    ...forAdmin('users:read'),
    summary: 'Get a user',
    response: 'User',
  },
  'POST /admin/users/{user_id}': {
    id: 'adminCreateUserWithId',
    ...forAdmin('users:write'),
    summary: 'Create a user with this id',
    response: 'User',
    example: ['ban_duration'],
  },
  'PUT /admin/users/{user_id}': {
    id: 'adminUpdateUser',
    ...forAdmin('users:write'),
    summary: 'Change a user; `ban_duration` bans',
    response: 'User',
    example: ['ban_duration'],
  },
  'DELETE /admin/users/{user_id}': {
    id: 'adminDeleteUser',
    ...forAdmin('users:write'),
    summary: 'Delete a user',
    response: 'Empty',
  },
  'POST /admin/users/{user_id}/recovery': {
    id: 'adminSendRecovery',
    ...forAdmin('users:write'),
    summary: 'Send a user a link to set a new password',
    response: 'Empty',
  },
  'GET /admin/users/{user_id}/sessions': {
    id: 'adminListSessions',
    ...forAdmin('users:read'),
    summary: 'List the sessions of a user',
    response: 'SessionList',
  },
  'DELETE /admin/users/{user_id}/sessions': {
    id: 'adminEndSessions',
    ...forAdmin('users:write'),
    summary: 'End all sessions of a user',
    response: 'Empty',
  },
  'DELETE /admin/users/{user_id}/sessions/{session_id}': {
    id: 'adminEndSession',
    ...forAdmin('users:write'),
    summary: 'End a session of a user',
    response: 'Empty',
  },
  'GET /admin/users/{user_id}/factors': {
    id: 'adminListFactors',
    ...forAdmin('users:read'),
    summary: 'List the second factors of a user',
    response: ['Factor'],
  },
  'PUT /admin/users/{user_id}/factors/{factor_id}': {
    id: 'adminUpdateFactor',
    ...forAdmin('users:write'),
    summary: 'Change a factor',
    response: 'Factor',
  },
  'DELETE /admin/users/{user_id}/factors/{factor_id}': {
    id: 'adminRemoveFactor',
    ...forAdmin('users:write'),
    summary: 'Remove a factor',
    response: 'Factor',
  },
  'GET /admin/users/{user_id}/passkeys': {
    id: 'adminListPasskeys',
    ...forAdmin('users:read'),
    summary: 'List the passkeys of a user',
    response: ['Passkey'],
  },
  'DELETE /admin/users/{user_id}/passkeys/{passkey_id}': {
    id: 'adminRemovePasskey',
    ...forAdmin('users:write'),
    summary: 'Remove a passkey',
    status: 204,
  },
  'POST /admin/generate_link': {
    id: 'adminGenerateLink',
    ...forAdmin('users:write'),
    summary: 'Generate a link without sending it',
    response: 'ActionLink',
    example: ['type', 'email', 'redirect_to'],
  },
};
