import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { errors } from '../errors.ts';
import type { AddRoutes } from '../http/api.ts';
import { body, optionalFlag, optionalObject, optionalText, uuidParameter } from '../http/api.ts';
import { authenticateAdmin } from '../http/authenticate.ts';
import { bodyLimits } from '../http/body.ts';
import { pageQuery, readPage, setPageHeaders } from '../http/pagination.ts';
import { requestedAudience, requestMetadata } from '../http/request-metadata.ts';
import type { JsonObject } from '../users/user-json.ts';
import { toUserJson } from '../users/user-json.ts';
import type { AdminUserInput } from './create-user.ts';
import { createCreateUser } from './create-user.ts';
import { createUpdateUser } from './update-user.ts';
import { createDeleteUser, createListUsers } from './users.ts';

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
const listQuery = Type.Object({
  ...pageQuery,
  filter: Type.Optional(
    Type.String({ description: 'Part of email, phone or full name, whatever its case.' }),
  ),
  sort: Type.Optional(
    Type.String({ description: '`created_at asc` or `created_at desc`, which is default.' }),
  ),
});

/** `/admin/users` */
export const addAdminUserRoutes: AddRoutes = (api, deps) => {
  const listUsers = createListUsers(deps);
  const createUser = createCreateUser(deps);
  const updateUser = createUpdateUser(deps);
  const deleteUser = createDeleteUser(deps);
  const bodyLimit = bodyLimits.admin;

  api.get('/admin/users', { schema: { querystring: listQuery } }, async (request, reply) => {
    await authenticateAdmin(request, deps);
    const page = readPage(request.query);
    const aud = requestedAudience(request, deps);
    const { filter = '', sort = '' } = request.query;
    const { items, total } = await listUsers({ ...page, aud, filter, sort });
    setPageHeaders(request, reply, { page, total });
    return reply.send({ users: items.map(toUserJson), aud });
  });

  api.post('/admin/users', { schema: { body: createBody }, bodyLimit }, async (request, reply) => {
    const { actor } = await authenticateAdmin(request, deps);
    const { id, aud } = request.body;
    const input = { ...inputOf(request.body), id, aud: aud || requestedAudience(request, deps) };
    return reply.send(toUserJson(await createUser(input, actor, requestMetadata(request, deps))));
  });

  api.post(
    '/admin/users/:user_id',
    { schema: { params, body: createBody }, bodyLimit },
    async (request, reply) => {
      const { actor } = await authenticateAdmin(request, deps);
      const id = uuidParameter(request.params, 'user_id');
      const { id: bodyId = id, aud } = request.body;
      if (bodyId.toLowerCase() !== id)
        throw errors.validation_failed({ message: 'id of the body is not that of the path' });
      const input = { ...inputOf(request.body), id, aud: aud || requestedAudience(request, deps) };
      return reply.send(toUserJson(await createUser(input, actor, requestMetadata(request, deps))));
    },
  );

  api.get('/admin/users/:user_id', { schema: { params } }, async (request, reply) => {
    await authenticateAdmin(request, deps);
    const user = await deps.store.users.findById(uuidParameter(request.params, 'user_id'));
    if (user === undefined) throw errors.user_not_found();
    return reply.send(toUserJson(user));
  });

  api.put(
    '/admin/users/:user_id',
    { schema: { params, body: changeBody }, bodyLimit },
    async (request, reply) => {
      const { actor } = await authenticateAdmin(request, deps);
      const id = uuidParameter(request.params, 'user_id');
      const metadata = requestMetadata(request, deps);
      return reply.send(toUserJson(await updateUser(id, inputOf(request.body), { actor, metadata })));
    },
  );

  const deletion = { schema: { params, body: deleteBody }, preValidation: mayHaveNoBody };
  api.delete('/admin/users/:user_id', deletion, async (request, reply) => {
    const { actor } = await authenticateAdmin(request, deps);
    const id = uuidParameter(request.params, 'user_id');
    const soft = request.body.should_soft_delete ?? false;
    await deleteUser({ id, soft }, actor, requestMetadata(request, deps));
    return reply.send({});
  });
};

/** No body is an empty one. */
function mayHaveNoBody(request: FastifyRequest, _reply: unknown, done: () => void): void {
  request.body ??= {};
  done();
}

function inputOf(b: Static<typeof changeBody>): AdminUserInput {
  return {
    role: b.role,
    email: b.email,
    phone: b.phone,
    password: b.password,
    passwordHash: b.password_hash,
    emailConfirm: b.email_confirm,
    phoneConfirm: b.phone_confirm,
    // Metadata came as JSON.
    userMetadata: b.user_metadata as JsonObject | undefined,
    appMetadata: b.app_metadata as JsonObject | undefined,
    banDuration: b.ban_duration,
  };
}
