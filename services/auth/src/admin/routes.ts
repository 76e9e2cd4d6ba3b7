import type { JsonObject } from '@tollgate/kit/json';
import { Type } from 'typebox';
import { auditEntry } from '../audit/audit-log.ts';
import { describeChanges } from '../audit/changes.ts';
import { errors } from '../errors.ts';
import {
  type AddRoutes,
  body,
  bodyLimits,
  optionalObject,
  optionalText,
  uuidParameter,
} from '../http/api.ts';
import { explainRedirect, redirectTarget } from '../http/redirects.ts';
import { requestedAudience } from '../http/request-metadata.ts';
import { getFactor, nameConflict, removeFactor } from '../mfa/factors.ts';
import { type AdminRequest, checkRoles, readAdminRequest } from '../sessions/admin-request.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import { listSessions, toSessionJson } from '../sessions/sessions.ts';
import type { Factor } from '../users/factor.ts';
import { getUser } from '../users/save-user.ts';
import { toFactorJson, toUserJson } from '../users/user.ts';
import { readOptionalPhone } from './input.ts';
import { generateLink, inviteUser, sendRecovery } from './links.ts';
import type { AdminContext } from './users.ts';

const inviteBody = body({ email: optionalText, data: optionalObject, redirect_to: optionalText });
const linkBody = body({
  type: optionalText,
  email: optionalText,
  new_email: optionalText,
  password: optionalText,
  data: optionalObject,
  redirect_to: optionalText,
  redirectTo: Type.Optional(
    Type.String({ description: 'Ignored. auth-js sends it beside the query parameter `redirect_to`.' }),
  ),
});

/** `/invite` and `/admin/generate_link` */
export const addAdminLinkRoutes: AddRoutes<AdminContext> = (api, context) => {
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

const redirectQuery = Type.Object({
  to: Type.Optional(Type.String({ description: 'A value of `redirect_to`, as the application sends it.' })),
});

/** `/admin/redirect-check` */
export const addAdminRedirectRoutes: AddRoutes<AdminContext> = (api, context) => {
  api.get('/admin/redirect-check', { schema: { querystring: redirectQuery } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    const { to = '' } = request.query;
    if (to === '')
      throw errors.validation_failed({ message: 'to is missing: ?to=<URL>, with the URL percent-encoded' });
    return reply.send(explainRedirect(to, context));
  });
};

const userParams = Type.Object({ user_id: Type.String() });
const factorParams = Type.Object({ user_id: Type.String(), factor_id: Type.String() });
const factorBody = body({ friendly_name: optionalText, phone: optionalText });

/** `/admin/users/:user_id/factors` */
export const addAdminFactorRoutes: AddRoutes<AdminContext> = (api, context) => {
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
    return reply.send(toFactorJson(await updateUserFactor(context, key, changes, adminRequest)));
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

/** `/admin/users/:user_id/recovery` */
export const addAdminRecoveryRoutes: AddRoutes<AdminContext> = (api, context) => {
  const path = '/admin/users/:user_id/recovery';
  api.post(path, { schema: { params: userParams } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    await sendRecovery(context, uuidParameter(request.params, 'user_id'), adminRequest);
    return reply.send({});
  });
};

const sessionParams = Type.Object({ user_id: Type.String(), session_id: Type.String() });

/** `/admin/users/:user_id/sessions` */
export const addAdminSessionRoutes: AddRoutes<AdminContext> = (api, context) => {
  const path = '/admin/users/:user_id/sessions';

  api.get(path, { schema: { params: userParams } }, async (request, reply) => {
    const { metadata } = await readAdminRequest(request, context);
    const userId = uuidParameter(request.params, 'user_id');
    await getUser(context.store, userId);
    const sessions = await listSessions(context, userId, metadata);
    return reply.send({ sessions: sessions.map((session) => toSessionJson(session, context.settings)) });
  });

  api.delete(path, { schema: { params: userParams } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    const userId = uuidParameter(request.params, 'user_id');
    const user = await getUser(context.store, userId);
    checkRoles(adminRequest, [user.role], context.settings);
    const target = { userId, sessionId: undefined };
    await context.store.sessions.end('global', target, logoutEntry(userId, adminRequest));
    return reply.send({});
  });

  api.delete(`${path}/:session_id`, { schema: { params: sessionParams } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    const userId = uuidParameter(request.params, 'user_id');
    const sessionId = uuidParameter(request.params, 'session_id');
    await endUserSession(context, { userId, sessionId }, adminRequest);
    return reply.send({});
  });
};

/** @throws AppError `user_not_found`, `session_not_found` (404). */
async function endUserSession(
  { store, settings }: AdminContext,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
  request: AdminRequest,
): Promise<void> {
  const found = await store.sessions.findWithUser(userId, sessionId);
  if (found === undefined) throw errors.user_not_found();
  checkRoles(request, [found.user.role], settings);
  if (found.session === undefined)
    throw errors.session_not_found({ httpStatus: 404, message: 'Session not found' });
  await store.sessions.end('with_clients', { userId, sessionId }, logoutEntry(userId, request));
}

function logoutEntry(userId: string, { actor, metadata }: AdminRequest) {
  return auditEntry(actor, 'logout', { metadata, traits: { user_id: userId } });
}

interface FactorKey {
  readonly userId: string;
  readonly factorId: string;
}

/** Empty texts leave the factor as it is. */
async function updateUserFactor(
  { store, settings }: AdminContext,
  { userId, factorId }: FactorKey,
  input: { readonly friendlyName?: string | undefined; readonly phone?: string | undefined },
  request: AdminRequest,
): Promise<Factor> {
  const user = await getUser(store, userId);
  checkRoles(request, [user.role], settings);
  const factor = getFactor(user, factorId);
  const { friendlyName = '' } = input;
  const phone = factor.type === 'phone' ? readOptionalPhone(input.phone) : '';
  const changes = { ...(friendlyName !== '' && { friendlyName }), ...(phone !== '' && { phone }) };
  const names = { friendlyName: 'friendly_name', phone: 'phone' } as const;
  const traits = describeChanges(
    (['friendlyName', 'phone'] as const).flatMap((key) =>
      changes[key] === undefined ? [] : { name: names[key], before: factor[key], after: changes[key] },
    ),
  );
  const result = await store.factors.update({ id: factor.id, userId }, changes, {
    at: new Date(request.metadata.nowMs),
    audit: factorEntry('factor_updated', { userId, factor, traits }, request),
  });
  if (result === 'name_conflict') throw nameConflict(friendlyName);
  return getFactor(await getUser(store, userId), factorId);
}

/** Removes a factor, for example one that the user has lost, and returns it. */
async function removeUserFactor(
  context: AdminContext,
  { userId, factorId }: FactorKey,
  request: AdminRequest,
): Promise<Factor> {
  const user = await getUser(context.store, userId);
  checkRoles(request, [user.role], context.settings);
  const factor = getFactor(user, factorId);
  const at = new Date(request.metadata.nowMs);
  const audit = (removed: Factor) => factorEntry('factor_deleted', { userId, factor: removed }, request);
  await removeFactor(context, { user, factor }, { at, audit });
  return factor;
}

function factorEntry(
  action: 'factor_updated' | 'factor_deleted',
  {
    userId,
    factor,
    traits,
  }: { readonly userId: string; readonly factor: Factor; readonly traits?: JsonObject },
  { actor, metadata }: AdminRequest,
) {
  return auditEntry(actor, action, {
    metadata,
    traits: { user_id: userId, factor_id: factor.id, factor_type: factor.type, ...traits },
  });
}
