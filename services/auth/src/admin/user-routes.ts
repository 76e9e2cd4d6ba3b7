import type { JsonObject } from '@tollgate/kit/json';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { errors } from '../errors.ts';
import {
  type AddRoutes,
  allowMissingBody,
  body,
  bodyLimits,
  optionalFlag,
  optionalObject,
  optionalText,
  pageQuery,
  parsePage,
  setNextLink,
  setPageHeaders,
  uuidParameter,
} from '../http/api.ts';
import { requestedAudience } from '../http/request-metadata.ts';
import { readAdminRequest } from '../sessions/admin-request.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import { getUser } from '../users/save-user.ts';
import { toUserJson } from '../users/user.ts';
import type { AdminUserInput } from './input.ts';
import {
  cursorQuery,
  parseCursor,
  setPagination,
  totalQuery,
  wantsCursor,
  wantsTotal,
} from './list-pages.ts';
import { filterQuery, readFilter, readOrder } from './user-list.ts';
import { type AdminContext, createUser, deleteUser, updateUser } from './users.ts';

const userMembers = {
  role: optionalText,
  email: optionalText,
  phone: optionalText,
  password: optionalText,
  password_hash: optionalText,
  email_confirm: optionalFlag,
  phone_confirm: optionalFlag,
  user_metadata: optionalObject,
  app_metadata: optionalObject,
  ban_duration: optionalText,
};
const changeBody = body(userMembers);
const createBody = body({ ...userMembers, id: optionalText, aud: optionalText });
const deleteBody = body({ should_soft_delete: optionalFlag });
const params = Type.Object({ user_id: Type.String() });
const listQuery = Type.Object({ ...pageQuery, ...totalQuery, ...cursorQuery, ...filterQuery });

/** `/admin/users` */
export const addAdminUserRoutes: AddRoutes<AdminContext> = (api, context) => {
  const { store, settings } = context;
  const path = '/admin/users/:user_id';
  const bodyLimit = bodyLimits.admin;

  api.get('/admin/users', { schema: { querystring: listQuery } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    const aud = requestedAudience(request, context);
    const filter = { ...readFilter(request.query), aud };
    const order = readOrder(request.query.sort);
    if (wantsCursor(request.query, settings.cursorPaginationEnabled)) {
      const { limit, after } = parseCursor(request.query);
      const { items, next } = await store.users.listAfter(filter, { order, limit, after });
      const pagination = setPagination(request, reply, { limit, next });
      return reply.send({ users: items.map(toUserJson), aud, pagination });
    }
    const page = parsePage(request.query);
    if (!wantsTotal(request.query)) {
      const { items, hasMore } = await store.users.listUncounted(filter, { order, ...page });
      if (hasMore) setNextLink(request, reply, { page: String(page.number + 1) });
      return reply.send({ users: items.map(toUserJson), aud });
    }
    const { items, total } = await store.users.list(filter, { order, ...page });
    setPageHeaders(request, reply, { page, total });
    return reply.send({ users: items.map(toUserJson), aud });
  });

  async function create(
    request: FastifyRequest,
    values: Static<typeof createBody>,
    parameters?: Static<typeof params>,
  ): Promise<JsonObject> {
    const adminRequest = await readAdminRequest(request, context);
    const id = parameters === undefined ? values.id : readPathId(parameters, values.id);
    const aud = values.aud || requestedAudience(request, context);
    return toUserJson(await createUser(context, { ...toUserInput(values), id, aud }, adminRequest));
  }

  api.post('/admin/users', { schema: { body: createBody }, bodyLimit }, async (request, reply) =>
    reply.send(await create(request, request.body)),
  );

  api.post(path, { schema: { params, body: createBody }, bodyLimit }, async (request, reply) =>
    reply.send(await create(request, request.body, request.params)),
  );

  api.get(path, { schema: { params } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    return reply.send(toUserJson(await getUser(store, uuidParameter(request.params, 'user_id'))));
  });

  api.put(path, { schema: { params, body: changeBody }, bodyLimit }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    const id = uuidParameter(request.params, 'user_id');
    const user = await updateUser(context, id, toUserInput(request.body), adminRequest);
    return reply.send(toUserJson(user));
  });

  const deletion = { schema: { params, body: deleteBody }, preValidation: allowMissingBody };
  api.delete(path, deletion, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    const id = uuidParameter(request.params, 'user_id');
    const soft = request.body.should_soft_delete ?? false;
    await deleteUser(context, { id, soft }, adminRequest);
    return reply.send({});
  });
};

function readPathId(parameters: Static<typeof params>, bodyId: string | undefined): string {
  const id = uuidParameter(parameters, 'user_id');
  if (bodyId !== undefined && bodyId.toLowerCase() !== id)
    throw errors.validation_failed({ message: 'id of the body differs from the id in the path' });
  return id;
}

function toUserInput(b: Static<typeof changeBody>): AdminUserInput {
  return {
    role: b.role,
    email: b.email,
    phone: b.phone,
    password: b.password,
    passwordHash: b.password_hash,
    emailConfirm: b.email_confirm,
    phoneConfirm: b.phone_confirm,
    // Metadata is parsed from JSON.
    userMetadata: b.user_metadata as JsonObject | undefined,
    appMetadata: b.app_metadata as JsonObject | undefined,
    banDuration: b.ban_duration,
  };
}
