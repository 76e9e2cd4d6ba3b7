import { Type } from 'typebox';
import { createSignOut } from '../../../use-cases/sessions/sign-out.ts';
import type { AddRoutes } from '../api.ts';
import { authenticateUser } from '../authenticate.ts';
import { logoutScope } from '../logout-scope.ts';
import { requestFacts } from '../request-facts.ts';

const logoutQuery = Type.Object({ scope: Type.Optional(Type.String()) });

/** `/logout` */
export const addLogoutRoutes: AddRoutes = (api, deps) => {
  const signOut = createSignOut(deps);
  api.post('/logout', { schema: { querystring: logoutQuery } }, async (request, reply) => {
    const scope = logoutScope(request.query.scope);
    const { user, session } = await authenticateUser(request, deps);
    await signOut({ user, sessionId: session?.id, scope }, requestFacts(request, deps));
    return reply.code(204).send();
  });
};
