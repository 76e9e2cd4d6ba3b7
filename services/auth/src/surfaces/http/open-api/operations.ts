import type { ComponentName } from './components.ts';

/** What the document says of a route besides what its schemas do. */
export interface Operation {
  readonly summary: string;
  /** Whose token it takes; nobody's when absent. */
  readonly caller?: 'user' | 'admin';
  /** What it answers: the name of a component, a list of one, or several of which it is one. An object of no interest when absent. */
  readonly answer?: ComponentName | readonly [ComponentName] | { readonly oneOf: readonly ComponentName[] };
  /** Status of the answer. Default 200. */
  readonly status?: 200 | 204 | 303;
}

const user = { caller: 'user' } as const;
const admin = { caller: 'admin' } as const;

/** Every route as `METHOD /path`, parameters in braces. */
export const operations: Readonly<Record<string, Operation>> = {
  'GET /health': { summary: 'Name and version of the server' },
  'GET /ready': {
    summary: 'Whether the server can work: 200, or 503 while the database is away',
  },
  'GET /settings': { summary: 'What the server lets users do', answer: 'Settings' },
  'GET /openapi.json': { summary: 'This document' },
  'GET /.well-known/jwks.json': { summary: 'Public keys of access tokens (RFC 7517)' },

  'POST /signup': {
    summary: 'Sign up by email or phone; with neither, as an anonymous user',
    answer: { oneOf: ['Session', 'User'] },
  },
  'POST /token': {
    summary: 'Get tokens: by password, refresh token or PKCE code; a form is answered as RFC 6749 has it',
    answer: 'Session',
  },
  'POST /otp': { summary: 'Send a link or a code to sign in with' },
  'POST /magiclink': { summary: 'Send a link to sign in with; /otp is newer' },
  'POST /recover': { summary: 'Send a link for a new password' },
  'POST /resend': { summary: 'Send a link or a code once more' },
  'GET /verify': { summary: 'Follow a link: signs in and redirects', status: 303 },
  'POST /verify': { summary: 'Spend a code or the token of a link', answer: 'Session' },

  'GET /user': { ...user, summary: 'The caller', answer: 'User' },
  'PUT /user': {
    ...user,
    summary: 'Change email, phone, password or metadata of the caller',
    answer: 'User',
  },
  'GET /reauthenticate': { ...user, summary: 'Send a nonce, which a change of password may ask for' },
  'POST /logout': { ...user, summary: 'End sessions: `global`, `local` or `others`', status: 204 },
  'GET /user/sessions': { ...user, summary: 'The sessions of the caller' },
  'DELETE /user/sessions': { ...user, summary: 'End sessions of the caller: as /logout does' },
  'DELETE /user/sessions/{session_id}': { ...user, summary: 'End a session of the caller' },

  'POST /factors': { ...user, summary: 'Enroll a second factor' },
  'POST /factors/{factor_id}/challenge': { ...user, summary: 'Begin to prove a factor' },
  'POST /factors/{factor_id}/verify': {
    ...user,
    summary: 'Prove a factor: a session with aal2',
    answer: 'Session',
  },
  'DELETE /factors/{factor_id}': { ...user, summary: 'Remove a factor' },

  'POST /invite': { ...admin, summary: 'Invite a user by email', answer: 'User' },
  'GET /admin/users': {
    ...admin,
    summary: 'Users, in pages (`X-Total-Count`, `Link`)',
    answer: 'UserList',
  },
  'POST /admin/users': { ...admin, summary: 'Create a user', answer: 'User' },
  'GET /admin/users/{user_id}': { ...admin, summary: 'A user', answer: 'User' },
  'POST /admin/users/{user_id}': { ...admin, summary: 'Create a user with this id', answer: 'User' },
  'PUT /admin/users/{user_id}': { ...admin, summary: 'Change a user; `ban_duration` bans', answer: 'User' },
  'DELETE /admin/users/{user_id}': { ...admin, summary: 'Delete a user' },
  'GET /admin/users/{user_id}/sessions': { ...admin, summary: 'The sessions of a user' },
  'DELETE /admin/users/{user_id}/sessions': { ...admin, summary: 'End all sessions of a user' },
  'DELETE /admin/users/{user_id}/sessions/{session_id}': { ...admin, summary: 'End a session of a user' },
  'GET /admin/users/{user_id}/factors': { ...admin, summary: 'Second factors of a user', answer: ['Factor'] },
  'PUT /admin/users/{user_id}/factors/{factor_id}': {
    ...admin,
    summary: 'Change a factor',
    answer: 'Factor',
  },
  'DELETE /admin/users/{user_id}/factors/{factor_id}': {
    ...admin,
    summary: 'Remove a factor',
    answer: 'Factor',
  },
  'POST /admin/generate_link': { ...admin, summary: 'Make a link without sending it', answer: 'ActionLink' },
  'GET /admin/audit': { ...admin, summary: 'The audit log, newest first' },
};
