import { Type } from 'typebox';
import { errors } from '../errors.ts';
import { type AddRoutes, uuidParameter } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { authenticateUser } from './authenticate.ts';
import type { SessionsContext } from './context.ts';
import { listSessions, revokeSession, signOutCaller, toSessionJson } from './sessions.ts';
import type { LogoutScope } from './store.ts';

const scopes: readonly LogoutScope[] = ['global', 'local', 'others'];

function parseScope(wanted = 'global'): LogoutScope {
  const scope = scopes.find((known) => known === wanted);
  if (scope === undefined)
    throw errors.validation_failed({ message: `Unsupported logout scope "${wanted}"` });
  return scope;
}

const sessionParameters = Type.Object({ session_id: Type.String() });
const scopeQuery = Type.Object({ scope: Type.Optional(Type.String()) });

/** `/user/sessions`: lists and ends the sessions of the caller. */
export const addSessionRoutes: AddRoutes<SessionsContext> = (api, context) => {
  api.get('/user/sessions', async (request, reply) => {
    const { user, session } = await authenticateUser(request, context);
    const sessions = await listSessions(context, user.id, requestMetadata(request, context));
    const options = { jwtExpMs: context.settings.jwtExpMs, currentId: session?.id };
    return reply.send({ sessions: sessions.map((each) => toSessionJson(each, options)) });
  });

  api.delete('/user/sessions', { schema: { querystring: scopeQuery } }, async (request, reply) => {
    const scope = parseScope(request.query.scope);
    const caller = await authenticateUser(request, context);
    await signOutCaller(context, { ...caller, scope }, requestMetadata(request, context));
    return reply.send({});
  });

  api.delete(
    '/user/sessions/:session_id',
    { schema: { params: sessionParameters } },
    async (request, reply) => {
      const caller = await authenticateUser(request, context);
      const sessionId = uuidParameter(request.params, 'session_id');
      await revokeSession(context, { ...caller, sessionId }, requestMetadata(request, context));
      return reply.send({});
    },
  );
};

/** `/logout` */
export const addLogoutRoutes: AddRoutes<SessionsContext> = (api, context) => {
  const options = { schema: { querystring: scopeQuery }, config: { oauthClients: true } };
  api.post('/logout', options, async (request, reply) => {
    const scope = parseScope(request.query.scope);
    const caller = await authenticateUser(request, context);
    await signOutCaller(context, { ...caller, scope }, requestMetadata(request, context));
    return reply.code(204).send();
  });
};
