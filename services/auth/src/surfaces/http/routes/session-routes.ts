import { Type } from 'typebox';
import { toSessionJson } from '../../../domain/session-json.ts';
import { createListSessions } from '../../../use-cases/sessions/list-sessions.ts';
import { createRevokeSession } from '../../../use-cases/sessions/revoke-session.ts';
import { createSignOut } from '../../../use-cases/sessions/sign-out.ts';
import type { AddRoutes } from '../api.ts';
import { authenticateUser } from '../authenticate.ts';
import { logoutScope } from '../logout-scope.ts';
import { requestFacts } from '../request-facts.ts';
import { uuidParameter } from '../uuid-parameter.ts';

const ofSession = Type.Object({ session_id: Type.String() });
const scopeQuery = Type.Object({ scope: Type.Optional(Type.String()) });

/** `/user/sessions`: where the caller is signed in, and an end to it. */
export const addSessionRoutes: AddRoutes = (api, deps) => {
  const listSessions = createListSessions(deps);
  const revokeSession = createRevokeSession(deps);
  const signOut = createSignOut(deps);

  api.get('/user/sessions', async (request, reply) => {
    const { user, session } = await authenticateUser(request, deps);
    const sessions = await listSessions(user.id, requestFacts(request, deps));
    return reply.send({ sessions: sessions.map((each) => toSessionJson(each, session?.id)) });
  });

  api.delete('/user/sessions', { schema: { querystring: scopeQuery } }, async (request, reply) => {
    const scope = logoutScope(request.query.scope);
    const { user, session } = await authenticateUser(request, deps);
    await signOut({ user, sessionId: session?.id, scope }, requestFacts(request, deps));
    return reply.send({});
  });

  api.delete('/user/sessions/:session_id', { schema: { params: ofSession } }, async (request, reply) => {
    const { user } = await authenticateUser(request, deps);
    const sessionId = uuidParameter(request.params, 'session_id');
    await revokeSession(user, sessionId, requestFacts(request, deps));
    return reply.send({});
  });
};
