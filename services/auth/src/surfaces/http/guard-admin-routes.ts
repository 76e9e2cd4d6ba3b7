import type { Api } from './api.ts';
import { type AuthDeps, verifyAdmin } from './authenticate.ts';

/**
 * Refuses whoever is no administrator at every route of theirs, before the body is taken in. That the session of the token still lasts
 * is asked in the route, which needs to know who it is.
 */
export function guardAdminRoutes(api: Api, deps: AuthDeps): void {
  api.addHook('onRequest', (request, _reply, done) => {
    if (isAdminRoute(request.routeOptions.url ?? '')) verifyAdmin(request, deps);
    done();
  });
}

function isAdminRoute(pattern: string): boolean {
  return pattern === '/invite' || pattern.startsWith('/admin/');
}
