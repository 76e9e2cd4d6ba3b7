/** Whether the scopes give a right, such as `limits:read`: `…:write` includes `…:read`. */
export function hasAdminScope(scopes: ReadonlySet<string>, scope: string): boolean {
  return scopes.has(scope) || (scope.endsWith(':read') && scopes.has(scope.replace(/:read$/, ':write')));
}
