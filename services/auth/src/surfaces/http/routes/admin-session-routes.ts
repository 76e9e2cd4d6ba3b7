import { Type } from 'typebox';
import { toSessionJson } from '../../../domain/session-json.ts';
import { createManageSessions } from '../../../use-cases/admin/manage-sessions.ts';
import type { AddRoutes } from '../api.ts';
import { authenticateAdmin } from '../authenticate.ts';
import { requestFacts } from '../request-facts.ts';
import { uuidParameter } from '../uuid-parameter.ts';

const userParams = Type.Object({ user_id: Type.String() });
const params = Type.Object({ user_id: Type.String(), session_id: Type.String() });

/** `/admin/users/:user_id/sessions`: where a user is signed in, and an end to it. */
export const addAdminSessionRoutes: AddRoutes = (api, deps) => {
  const sessions = createManageSessions(deps);
  const path = '/admin/users/:user_id/sessions';

  api.get(path, { schema: { params: userParams } }, async (request, reply) => {
    await authenticateAdmin(request, deps);
    const userId = uuidParameter(request.params, 'user_id');
    const listed = await sessions.list(userId, requestFacts(request, deps));
    return reply.send({ sessions: listed.map((session) => toSessionJson(session)) });
  });

  api.delete(path, { schema: { params: userParams } }, async (request, reply) => {
    const { actor } = await authenticateAdmin(request, deps);
    const userId = uuidParameter(request.params, 'user_id');
    await sessions.endAll(userId, { actor, facts: requestFacts(request, deps) });
    return reply.send({});
  });

  api.delete(`${path}/:session_id`, { schema: { params } }, async (request, reply) => {
    const { actor } = await authenticateAdmin(request, deps);
    const userId = uuidParameter(request.params, 'user_id');
    const sessionId = uuidParameter(request.params, 'session_id');
    await sessions.end({ userId, sessionId }, { actor, facts: requestFacts(request, deps) });
    return reply.send({});
  });
};
