import { adminScopePrefix, hasAdminScope } from '@tollgate/admin-clients/admin-scopes';

/**
 * Pages and actions with the admin scope that each needs (docs/admin-scopes.md). Without the scope,
 * a person gets neither link nor button, and 403 for the request.
 */
const scopes = {
  overview: undefined,
  'overview/configuration': 'policies:read',
  limits: 'limits:read',
  'limits/change': 'limits:write',
  'what-if': 'limits:read',
  policies: 'policies:read',
  explain: 'policies:read',
  'explain/credential': 'keys:verify',
  users: 'users:read',
  'users/change': 'users:write',
  organizations: 'organizations:write',
  'api-keys': 'keys:write',
  clients: 'clients:write',
  providers: 'providers:write',
  issuers: 'policies:read',
  audit: 'audit:read',
  deliveries: 'webhooks:write',
  settings: 'settings:read',
} as const satisfies Readonly<Record<string, string | undefined>>;

/** A page or action with rights of its own. */
export type Permission = keyof typeof scopes;

/** All scopes of the table, or those of them that a setting names. */
export function requestedScopes(only: readonly string[]): readonly string[] {
  const all = new Set(Object.values(scopes).filter((scope) => scope !== undefined));
  return [...all]
    .filter((scope) => only.length === 0 || only.includes(scope))
    .map((scope) => adminScopePrefix + scope);
}

/** Whether the granted scopes, as in a token response, suffice. */
export function isPermitted(granted: ReadonlySet<string>, permission: Permission): boolean {
  const scope: string | undefined = scopes[permission];
  return scope === undefined || hasAdminScope(granted, adminScopePrefix + scope);
}
