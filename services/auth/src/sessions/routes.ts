import { Type } from 'typebox';
import { errors } from '../errors.ts';
import { type AddRoutes, uuidParameter } from '../http/api.ts';
import { authenticateUser } from '../http/authenticate.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { toSessionJson } from './session-json.ts';
import { createListSessions, createRevokeSession, createSignOut } from './sessions.ts';
import type { LogoutScope } from './store.ts';

const scopes: readonly LogoutScope[] = ['global', 'local', 'others'];

/** Which sessions `scope` of a query is about; all when it is absent. @throws AppError `validation_failed`. */
function logoutScope(wanted = 'global'): LogoutScope {
  const scope = scopes.find((known) => known === wanted);
  if (scope === undefined)
    throw errors.validation_failed({ message: `Unsupported logout scope "${wanted}"` });
  return scope;
}

const ofSession = Type.Object({ session_id: Type.String() });
const scopeQuery = Type.Object({ scope: Type.Optional(Type.String()) });

/** `/user/sessions`: where the caller is signed in, and an end to it. */
export const addSessionRoutes: AddRoutes = (api, deps) => {
  const listSessions = createListSessions(deps);
  const revokeSession = createRevokeSession(deps);
  const signOut = createSignOut(deps);

  api.get('/user/sessions', async (request, reply) => {
    const { user, session } = await authenticateUser(request, deps);
    const sessions = await listSessions(user.id, requestMetadata(request, deps));
    return reply.send({ sessions: sessions.map((each) => toSessionJson(each, session?.id)) });
  });

  api.delete('/user/sessions', { schema: { querystring: scopeQuery } }, async (request, reply) => {
    const scope = logoutScope(request.query.scope);
    const { user, session } = await authenticateUser(request, deps);
    await signOut({ user, sessionId: session?.id, scope }, requestMetadata(request, deps));
    return reply.send({});
  });

  api.delete('/user/sessions/:session_id', { schema: { params: ofSession } }, async (request, reply) => {
    const { user } = await authenticateUser(request, deps);
    const sessionId = uuidParameter(request.params, 'session_id');
    await revokeSession(user, sessionId, requestMetadata(request, deps));
    return reply.send({});
  });
};

const logoutQuery = Type.Object({ scope: Type.Optional(Type.String()) });

/** `/logout` */
export const addLogoutRoutes: AddRoutes = (api, deps) => {
  const signOut = createSignOut(deps);
  api.post('/logout', { schema: { querystring: logoutQuery } }, async (request, reply) => {
    const scope = logoutScope(request.query.scope);
    const { user, session } = await authenticateUser(request, deps);
    await signOut({ user, sessionId: session?.id, scope }, requestMetadata(request, deps));
    return reply.code(204).send();
  });
};
