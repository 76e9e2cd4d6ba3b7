import { Type } from 'typebox';
import { type AddRoutes, body, optionalObject, optionalText, uuidParameter } from '../http/api.ts';
import { authenticateAdmin } from '../http/authenticate.ts';
import { bodyLimits } from '../http/body.ts';
import { pageQuery, readPage, setPageHeaders } from '../http/pagination.ts';
import { redirectTarget } from '../http/redirects.ts';
import { requestedAudience, requestMetadata } from '../http/request-metadata.ts';
import { toSessionJson } from '../sessions/session-json.ts';
import { type JsonObject, toFactorJson, toUserJson } from '../users/user-json.ts';
import { createManageFactors } from './factors.ts';
import { createGenerateLink, createInviteUser } from './links.ts';
import { createManageSessions } from './sessions.ts';
import { createListAuditEntries } from './users.ts';

const inviteBody = body({ email: optionalText, data: optionalObject, redirect_to: optionalText });
const linkBody = body({
  type: optionalText,
  email: optionalText,
  new_email: optionalText,
  password: optionalText,
  data: optionalObject,
  redirect_to: optionalText,
});

/** `/invite` and `/admin/generate_link`: links that administrators have sent, or hand over themselves. */
export const addAdminLinkRoutes: AddRoutes = (api, deps) => {
  const inviteUser = createInviteUser(deps);
  const generateLink = createGenerateLink(deps);

  api.post(
    '/invite',
    { schema: { body: inviteBody }, bodyLimit: bodyLimits.admin },
    async (request, reply) => {
      const { actor } = await authenticateAdmin(request, deps);
      const { email = '', data = {} } = request.body;
      const invitation = {
        email,
        data: data as JsonObject, // it came as JSON
        aud: requestedAudience(request, deps),
        redirectTo: redirectTarget(request, request.body, deps),
      };
      return reply.send(toUserJson(await inviteUser(invitation, actor, requestMetadata(request, deps))));
    },
  );

  api.post(
    '/admin/generate_link',
    { schema: { body: linkBody }, bodyLimit: bodyLimits.admin },
    async (request, reply) => {
      const { actor } = await authenticateAdmin(request, deps);
      const { type = '', email = '', new_email: newEmail = '', password = '', data = {} } = request.body;
      const wanted = {
        type,
        email,
        newEmail,
        password,
        data: data as JsonObject, // it came as JSON
        aud: requestedAudience(request, deps),
        redirectTo: redirectTarget(request, request.body, deps),
      };
      const { user, link } = await generateLink(wanted, actor, requestMetadata(request, deps));
      return reply.send({
        ...toUserJson(user),
        action_link: link.actionLink,
        email_otp: link.emailOtp,
        hashed_token: link.hashedToken,
        verification_type: link.verificationType,
        redirect_to: link.redirectTo,
      });
    },
  );
};

const userParams = Type.Object({ user_id: Type.String() });
const params = Type.Object({ user_id: Type.String(), factor_id: Type.String() });
const changeBody = body({ friendly_name: optionalText, phone: optionalText });

/** `/admin/users/:user_id/factors` */
export const addAdminFactorRoutes: AddRoutes = (api, deps) => {
  const factors = createManageFactors(deps);
  const path = '/admin/users/:user_id/factors';

  api.get(path, { schema: { params: userParams } }, async (request, reply) => {
    await authenticateAdmin(request, deps);
    const listed = await factors.list(uuidParameter(request.params, 'user_id'));
    return reply.send(listed.map(toFactorJson));
  });

  api.put(`${path}/:factor_id`, { schema: { params, body: changeBody } }, async (request, reply) => {
    const { actor } = await authenticateAdmin(request, deps);
    const { friendly_name: friendlyName, phone } = request.body;
    const metadata = requestMetadata(request, deps);
    const changed = await factors.update(
      factorOf(request.params),
      { friendlyName, phone },
      { actor, metadata },
    );
    return reply.send(toFactorJson(changed));
  });

  api.delete(`${path}/:factor_id`, { schema: { params } }, async (request, reply) => {
    const { actor } = await authenticateAdmin(request, deps);
    const metadata = requestMetadata(request, deps);
    const removed = await factors.remove(factorOf(request.params), { actor, metadata });
    return reply.send(toFactorJson(removed));
  });
};

function factorOf(parameters: { readonly user_id: string; readonly factor_id: string }) {
  return {
    userId: uuidParameter(parameters, 'user_id'),
    factorId: uuidParameter(parameters, 'factor_id'),
  };
}

const adminSessionRoutesUserParams = Type.Object({ user_id: Type.String() });
const adminSessionRoutesParams = Type.Object({ user_id: Type.String(), session_id: Type.String() });

/** `/admin/users/:user_id/sessions`: where a user is signed in, and an end to it. */
export const addAdminSessionRoutes: AddRoutes = (api, deps) => {
  const sessions = createManageSessions(deps);
  const path = '/admin/users/:user_id/sessions';

  api.get(path, { schema: { params: adminSessionRoutesUserParams } }, async (request, reply) => {
    await authenticateAdmin(request, deps);
    const userId = uuidParameter(request.params, 'user_id');
    const listed = await sessions.list(userId, requestMetadata(request, deps));
    return reply.send({ sessions: listed.map((session) => toSessionJson(session)) });
  });

  api.delete(path, { schema: { params: adminSessionRoutesUserParams } }, async (request, reply) => {
    const { actor } = await authenticateAdmin(request, deps);
    const userId = uuidParameter(request.params, 'user_id');
    await sessions.endAll(userId, { actor, metadata: requestMetadata(request, deps) });
    return reply.send({});
  });

  api.delete(
    `${path}/:session_id`,
    { schema: { params: adminSessionRoutesParams } },
    async (request, reply) => {
      const { actor } = await authenticateAdmin(request, deps);
      const userId = uuidParameter(request.params, 'user_id');
      const sessionId = uuidParameter(request.params, 'session_id');
      await sessions.end({ userId, sessionId }, { actor, metadata: requestMetadata(request, deps) });
      return reply.send({});
    },
  );
};

const listQuery = Type.Object({ ...pageQuery, query: Type.Optional(Type.String()) });

/** `/admin/audit` */
export const addAdminAuditRoutes: AddRoutes = (api, deps) => {
  const listAuditEntries = createListAuditEntries(deps);
  api.get('/admin/audit', { schema: { querystring: listQuery } }, async (request, reply) => {
    await authenticateAdmin(request, deps);
    const page = readPage(request.query);
    const { query = '' } = request.query;
    const { items, total } = await listAuditEntries({ ...page, query });
    setPageHeaders(request, reply, { page, total });
    return reply.send(
      items.map(({ id, payload, at, ip }) => ({
        id,
        payload,
        created_at: at.toISOString(),
        ip_address: ip,
      })),
    );
  });
};
