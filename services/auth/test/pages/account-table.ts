import type { PageRow } from './page-table.ts';

const visitor = 'user';

/** Pages of the account area. */
export const accountTable: readonly PageRow[] = [
  { visitor, path: 'account', title: 'yourAccount' },
  { visitor, path: 'account?saved=profile', title: 'yourAccount' },
  { visitor, path: 'phone-code', title: 'phoneCodeTitle' },
  { visitor, path: 'security', title: 'security' },
  { visitor, path: 'security?error_code=bad_oauth_state', title: 'security', hasProblem: true },
  { visitor, path: 'passkey-add', title: 'addPasskey' },
  { visitor, path: 'passkey-add', title: 'addPasskey', submit: { target: 'passkey-add' } },
  { visitor, path: ({ passkey }) => `passkey-name?passkey=${passkey}`, title: 'renamePasskey' },
  { visitor, path: ({ passkey }) => `passkey-remove?passkey=${passkey}`, title: 'removePasskey' },
  { visitor, path: 'sessions', title: 'sessions' },
  {
    visitor,
    path: 'sessions',
    title: 'sessions',
    submit: { target: 'session-end', fields: { session_id: 'x' } },
    hasProblem: true,
  },
  { visitor, path: 'applications', title: 'applications' },
  { visitor, path: 'organizations', title: 'organizations' },
  { visitor, path: 'api-keys', title: 'apiKeys' },
  { visitor, path: 'data', title: 'yourData' },
  { visitor, path: 'delete', title: 'deleteAccount' },
];
