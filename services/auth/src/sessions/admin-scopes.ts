import { adminScopePrefix } from '@tollgate/admin-clients/admin-scopes';

/** Rights in the admin API with their meanings. `…:write` includes `…:read`. */
export const adminScopeDocs = {
  'users:read': 'Read users, their sessions and factors.',
  'users:write':
    'Create, change, ban, delete, invite and import users, and make links that sign them in. Not users with a role of `SVC_JWT_ADMIN_ROLES`, and no such role.',
  'providers:write':
    'Manage identity providers. A provider says who signs in, administrators included: give it like the password of an administrator.',
  'keys:write': 'Manage API keys. The admin scopes of a key are at most those of the key that makes it.',
  'keys:verify': 'Check API keys, and access tokens of administrators, for services without a gateway.',
  'organizations:write': 'Manage organizations, their members and plans.',
  'clients:write': 'Manage OAuth clients.',
  'limits:read': 'Read limits.',
  'limits:write': 'Change limits.',
  'audit:read': 'Read the audit log.',
  'webhooks:write':
    'Manage webhooks and failed events. A webhook gets the data of all users that its events are about.',
  'policies:read':
    'Explain checks, read [other token issuers](other-issuers.md), and read access policies and limits, their versions and the clients that have them, in the [admin API of the xDS server](xds-admin-api.md).',
  'settings:read':
    'Read the settings of all services, without secrets, with the warnings of their starts, and the signing keys without the keys themselves.',
} as const;

export type AdminScope = keyof typeof adminScopeDocs;

export const adminScopes: readonly string[] = Object.keys(adminScopeDocs);

/** Whether a scope of an OAuth client is for the admin API. Operators have no such names. */
export function isAdminScope(name: string): boolean {
  return name.startsWith(adminScopePrefix);
}

/** The admin scope that a scope of an OAuth client stands for. */
export function adminScopeName(name: string): string {
  return name.slice(adminScopePrefix.length);
}

/** Whether the name is that of an admin scope that exists. */
export function isKnownAdminScope(name: string): boolean {
  return isAdminScope(name) && adminScopes.includes(adminScopeName(name));
}

/** The admin scopes in a `scope` of OAuth. */
export function toAdminScopes(scope: unknown): ReadonlySet<string> {
  const names = typeof scope === 'string' ? scope.split(' ') : [];
  return new Set(names.filter(isKnownAdminScope).map(adminScopeName));
}
