import { type Static, Type } from 'typebox';
import { toKeyJson } from '../api-keys/api-key.ts';
import type { ApiKeysContext } from '../api-keys/context.ts';
import {
  createApiKey,
  getApiKey,
  requireApiKeys,
  revokeApiKey,
  rotateApiKey,
  updateApiKey,
} from '../api-keys/keys.ts';
import { rotateBody } from '../api-keys/routes.ts';
import type { KeyFilter } from '../api-keys/store.ts';
import { type VerifyContext, verifyKey } from '../ext-authz/verify-key.ts';
import {
  type AddRoutes,
  allowMissingBody,
  body,
  bodyLimits,
  optionalText,
  uuidParameter,
} from '../http/api.ts';
import { readAdminRequest } from '../sessions/admin-request.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import { changeKeyBody, createKeyBody, readOwner, requireUuids, toKeyInput } from './api-key-body.ts';
import { cursorQuery, parameter, parseCursor, setPagination } from './list-pages.ts';

const verifyBody = body({ key: Type.String(), address: optionalText });
const params = Type.Object({ key_id: Type.String() });
const listQuery = Type.Object({
  user_id: parameter('Id of the user who owns the keys.'),
  org_id: parameter('Id of the organisation that owns the keys.'),
  plan: parameter('The plan of the keys. Keys with the plan of their owner are not listed.'),
  prefix: parameter('How the keys start, without the `_`.'),
  last4: parameter('The last four characters of the key.'),
  ...cursorQuery,
});

/** `/admin/api-keys` */
export const addAdminApiKeyRoutes: AddRoutes<ApiKeysContext & VerifyContext> = (api, context) => {
  const path = '/admin/api-keys';
  const one = `${path}/:key_id`;
  const bodyLimit = bodyLimits.contact;

  api.get(path, { schema: { querystring: listQuery } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    requireApiKeys(context);
    const { limit, after } = parseCursor(request.query);
    const { items, next } = await context.store.apiKeys.listAfter(readFilter(request.query), {
      limit,
      after,
    });
    const pagination = setPagination(request, reply, { limit, next });
    return reply.send({ api_keys: items.map(toKeyJson), pagination });
  });

  api.post(path, { schema: { body: createKeyBody }, bodyLimit }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireApiKeys(context);
    const owner = readOwner(request.body.owner);
    const { key, text } = await createApiKey(
      context,
      { owner, input: toKeyInput(request.body) },
      adminRequest,
    );
    return reply.code(201).send({ ...toKeyJson(key), key: text });
  });

  api.post(`${path}/verify`, { schema: { body: verifyBody } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    requireApiKeys(context);
    return reply.send(await verifyKey(context, request.body));
  });

  api.get(one, { schema: { params } }, async (request, reply) => {
    await authenticateAdmin(request, context);
    requireApiKeys(context);
    return reply.send(toKeyJson(await getApiKey(context, uuidParameter(request.params, 'key_id'))));
  });

  api.put(one, { schema: { params, body: changeKeyBody }, bodyLimit }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireApiKeys(context);
    const before = await getApiKey(context, uuidParameter(request.params, 'key_id'));
    const change = { input: toKeyInput(request.body), request: adminRequest };
    return reply.send(toKeyJson(await updateApiKey(context, before, change)));
  });

  const rotation = { schema: { params, body: rotateBody }, preValidation: allowMissingBody };
  api.post(`${one}/rotate`, rotation, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireApiKeys(context);
    const old = await getApiKey(context, uuidParameter(request.params, 'key_id'));
    const { key, text } = await rotateApiKey(context, { old, grace: request.body.grace }, adminRequest);
    return reply.code(201).send({ ...toKeyJson(key), key: text });
  });

  api.delete(one, { schema: { params } }, async (request, reply) => {
    const adminRequest = await readAdminRequest(request, context);
    requireApiKeys(context);
    const key = await getApiKey(context, uuidParameter(request.params, 'key_id'));
    await revokeApiKey(context, key, adminRequest);
    return reply.code(204).send();
  });
};

/** Empty values are ignored. */
function readFilter(query: Static<typeof listQuery>): KeyFilter {
  const { user_id: userId = '', org_id: orgId = '', plan = '', prefix = '', last4 = '' } = query;
  requireUuids({ user_id: userId, org_id: orgId });
  return {
    ...(userId !== '' && { userId }),
    ...(orgId !== '' && { orgId }),
    ...(plan !== '' && { plan }),
    ...(prefix !== '' && { prefix }),
    ...(last4 !== '' && { last4 }),
  };
}
