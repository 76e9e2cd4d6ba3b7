import { Type } from 'typebox';
import { errors } from '../../../errors.ts';
import type { LogoutScope } from '../../../ports/session-store.ts';
import { createSignOut } from '../../../use-cases/sessions/sign-out.ts';
import type { AddRoutes } from '../api.ts';
import { authenticateUser } from '../authenticate.ts';
import { requestFacts } from '../request-facts.ts';

const logoutQuery = Type.Object({ scope: Type.Optional(Type.String()) });
const scopes: readonly LogoutScope[] = ['global', 'local', 'others'];

/** `/logout` */
export const addLogoutRoutes: AddRoutes = (api, deps) => {
  const signOut = createSignOut(deps);
  api.post('/logout', { schema: { querystring: logoutQuery } }, async (request, reply) => {
    const { scope: wanted = 'global' } = request.query;
    const scope = scopes.find((known) => known === wanted);
    if (scope === undefined)
      throw errors.validation_failed({ message: `Unsupported logout scope "${wanted}"` });
    const { user, session } = await authenticateUser(request, deps);
    await signOut({ user, sessionId: session?.id, scope }, requestFacts(request, deps));
    return reply.code(204).send();
  });
};
