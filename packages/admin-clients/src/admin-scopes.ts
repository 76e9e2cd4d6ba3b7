/** Begins admin scopes where they are scopes of OAuth clients: `tollgate:users:read`. */
export const adminScopePrefix = 'tollgate:';

/** Whether the scopes give a right, such as `limits:read`: `…:write` includes `…:read`. */
export function hasAdminScope(scopes: ReadonlySet<string>, scope: string): boolean {
  return scopes.has(scope) || (scope.endsWith(':read') && scopes.has(scope.replace(/:read$/, ':write')));
}
