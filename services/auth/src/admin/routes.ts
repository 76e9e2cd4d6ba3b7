import { Type } from 'typebox';
import {
  type AddRoutes,
  body,
  optionalObject,
  optionalText,
  pageQuery,
  parsePage,
  setPageHeaders,
  uuidParameter,
} from '../http/api.ts';
import { authenticateAdmin } from '../http/authenticate.ts';
import { bodyLimits } from '../http/body.ts';
import { redirectTarget } from '../http/redirects.ts';
import { requestedAudience } from '../http/request-metadata.ts';
import { toSessionJson } from '../sessions/sessions.ts';
import { getUser } from '../users/update.ts';
import { type JsonObject, toFactorJson, toUserJson } from '../users/user.ts';
import { removeUserFactor, updateUserFactor } from './factors.ts';
import { readAdminRequest } from './input.ts';
import { generateLink, inviteUser } from './links.ts';
import { endUserSession, endUserSessions, listAuditEntries, listUserSessions } from './users.ts';

const inviteBody = body({ email: optionalText, data: optionalObject, redirect_to: optionalText });
const linkBody = body({
  type: optionalText,
  email: optionalText,
  new_email: optionalText,
  password: optionalText,
  data: optionalObject,
  redirect_to: optionalText,
});

/** `/invite` and `/admin/generate_link` */
export const addAdminLinkRoutes: AddRoutes = (api, context) => {
  const bodyLimit = bodyLimits.admin;

  api.post('/invite', { schema: { body: inviteBody }, bodyLimit }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    const { email = '', data = {} } = request.body;
    const invitation = {
      email,
      data: data as JsonObject, // parsed from JSON
      aud: requestedAudience(request, context),
      redirectTo: redirectTarget(request, request.body, context),
    };
    return reply.send(toUserJson(await inviteUser(context, invitation, adminRequest)));
  });

  api.post('/admin/generate_link', { schema: { body: linkBody }, bodyLimit }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    const { type = '', email = '', new_email: newEmail = '', password = '', data = {} } = request.body;
    const linkRequest = {
      type,
      email,
      newEmail,
      password,
      data: data as JsonObject, // parsed from JSON
      aud: requestedAudience(request, context),
      redirectTo: redirectTarget(request, request.body, context),
    };
    const { user, link } = await generateLink(context, linkRequest, adminRequest);
    return reply.send({
      ...toUserJson(user),
      action_link: link.actionLink,
      email_otp: link.emailOtp,
      hashed_token: link.hashedToken,
      verification_type: link.verificationType,
      redirect_to: link.redirectTo,
    });
  });
};

const userParams = Type.Object({ user_id: Type.String() });
const factorParams = Type.Object({ user_id: Type.String(), factor_id: Type.String() });
const factorBody = body({ friendly_name: optionalText, phone: optionalText });

/** `/admin/users/:user_id/factors` */
export const addAdminFactorRoutes: AddRoutes = (api, context) => {
  const path = '/admin/users/:user_id/factors';

  api.get(path, { schema: { params: userParams } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    const { factors } = await getUser(context.store, uuidParameter(request.params, 'user_id'));
    return reply.send(factors.map(toFactorJson));
  });

  const update = { schema: { params: factorParams, body: factorBody } };
  api.put(`${path}/:factor_id`, update, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    const { friendly_name: friendlyName, phone } = request.body;
    const key = readFactorKey(request.params);
    const changes = { friendlyName, phone };
    return reply.send(toFactorJson(await updateUserFactor(context.store, key, changes, adminRequest)));
  });

  api.delete(`${path}/:factor_id`, { schema: { params: factorParams } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    const removed = await removeUserFactor(context, readFactorKey(request.params), adminRequest);
    return reply.send(toFactorJson(removed));
  });
};

function readFactorKey(parameters: { readonly user_id: string; readonly factor_id: string }) {
  return {
    userId: uuidParameter(parameters, 'user_id'),
    factorId: uuidParameter(parameters, 'factor_id'),
  };
}

const sessionParams = Type.Object({ user_id: Type.String(), session_id: Type.String() });

/** `/admin/users/:user_id/sessions` */
export const addAdminSessionRoutes: AddRoutes = (api, context) => {
  const path = '/admin/users/:user_id/sessions';

  api.get(path, { schema: { params: userParams } }, async (request, reply) => {
    const { metadata } = await readAdminRequest(request, context);
    const userId = uuidParameter(request.params, 'user_id');
    const sessions = await listUserSessions(context, userId, metadata);
    return reply.send({ sessions: sessions.map((session) => toSessionJson(session)) });
  });

  api.delete(path, { schema: { params: userParams } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    await endUserSessions(context.store, uuidParameter(request.params, 'user_id'), adminRequest);
    return reply.send({});
  });

  api.delete(`${path}/:session_id`, { schema: { params: sessionParams } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    const userId = uuidParameter(request.params, 'user_id');
    const sessionId = uuidParameter(request.params, 'session_id');
    await endUserSession(context.store, { userId, sessionId }, adminRequest);
    return reply.send({});
  });
};

const auditQuery = Type.Object({ ...pageQuery, query: Type.Optional(Type.String()) });

/** `/admin/audit` */
export const addAdminAuditRoutes: AddRoutes = (api, context) => {
  api.get('/admin/audit', { schema: { querystring: auditQuery } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    const page = parsePage(request.query);
    const { query = '' } = request.query;
    const { items, total } = await listAuditEntries(context.store, { ...page, query });
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
