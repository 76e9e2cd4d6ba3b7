import { errors } from '../../errors.ts';
import type { LogoutScope } from '../../ports/session-store.ts';

const scopes: readonly LogoutScope[] = ['global', 'local', 'others'];

/** Which sessions `scope` of a query is about; all when it is absent. @throws AppError `validation_failed`. */
export function logoutScope(wanted = 'global'): LogoutScope {
  const scope = scopes.find((known) => known === wanted);
  if (scope === undefined)
    throw errors.validation_failed({ message: `Unsupported logout scope "${wanted}"` });
  return scope;
}
