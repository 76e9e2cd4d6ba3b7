import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import {
  createApiKey,
  getOwnKey,
  getOwnKeyForChange,
  revokeApiKey,
  rotateApiKey,
  updateApiKey,
} from '../api-keys/keys.ts';
import {
  ownKeyBody,
  readOwnInput,
  requireKeyAssurance,
  requireSelfService,
  rotateBody,
  toOwnKeyJson,
} from '../api-keys/routes.ts';
import { type AddRoutes, allowMissingBody, bodyLimits, uuidParameter } from '../http/api.ts';
import { changeKeys, type OrganizationKeysContext } from './keys.ts';
import { readMemberRequest, requireOrganizations } from './requests.ts';

const params = Type.Object({ organization_id: Type.String() });
const keyParams = Type.Object({ organization_id: Type.String(), key_id: Type.String() });

/** `/organizations/{organization_id}/api-keys` */
export const addOrganizationKeyRoutes: AddRoutes<OrganizationKeysContext> = (api, context) => {
  const { store, settings } = context;
  const { apiKeysPerOrganization: maxKeys } = settings;
  const onRequest = requireOrganizations(context);
  const path = '/organizations/:organization_id/api-keys';
  const one = `${path}/:key_id`;
  const bodyLimit = bodyLimits.contact;

  /** The member, whose session must be one that may create keys. */
  const readKeyRequest = async (
    request: FastifyRequest<{ Params: { readonly organization_id: string } }>,
  ) => {
    requireSelfService(context);
    const member = await readMemberRequest(request, context, 'keys:write');
    requireKeyAssurance(context, member);
    return member;
  };

  api.get(path, { schema: { params }, onRequest }, async (request, reply) => {
    requireSelfService(context);
    const { organization } = await readMemberRequest(request, context, 'keys:read');
    const keys = await store.apiKeys.listOwned(organization.id);
    return reply.send({ api_keys: keys.map(toOwnKeyJson) });
  });

  const creation = { schema: { params, body: ownKeyBody }, bodyLimit, onRequest };
  api.post(path, creation, async (request, reply) => {
    const member = await readKeyRequest(request);
    const input = readOwnInput(request.body, settings);
    const owner = { orgId: member.organization.id };
    const { key, text } = await changeKeys(context, member, (locked) =>
      createApiKey(locked, { owner, input, maxKeys, byMember: true }, member),
    );
    return reply.code(201).send({ ...toOwnKeyJson(key), key: text });
  });

  api.get(one, { schema: { params: keyParams }, onRequest }, async (request, reply) => {
    requireSelfService(context);
    const { organization } = await readMemberRequest(request, context, 'keys:read');
    const id = uuidParameter(request.params, 'key_id');
    return reply.send(toOwnKeyJson(await getOwnKey(context, { orgId: organization.id }, id)));
  });

  const change = { schema: { params: keyParams, body: ownKeyBody }, bodyLimit, onRequest };
  api.patch(one, change, async (request, reply) => {
    const member = await readKeyRequest(request);
    const input = readOwnInput(request.body, settings);
    const owner = { orgId: member.organization.id };
    const named = { id: uuidParameter(request.params, 'key_id'), nowMs: member.metadata.nowMs };
    const key = await changeKeys(context, member, async (locked) =>
      updateApiKey(locked, await getOwnKeyForChange(locked, owner, named), { input, request: member }),
    );
    return reply.send(toOwnKeyJson(key));
  });

  // A session that may not create keys may still stop one.
  api.delete(one, { schema: { params: keyParams }, onRequest }, async (request, reply) => {
    requireSelfService(context);
    const member = await readMemberRequest(request, context, 'keys:write');
    const owner = { orgId: member.organization.id };
    const id = uuidParameter(request.params, 'key_id');
    await changeKeys(context, member, async (locked) =>
      revokeApiKey(locked, await getOwnKey(locked, owner, id), member),
    );
    return reply.code(204).send();
  });

  const rotation = {
    schema: { params: keyParams, body: rotateBody },
    preValidation: allowMissingBody,
    onRequest,
  };
  api.post(`${one}/rotate`, rotation, async (request, reply) => {
    const member = await readKeyRequest(request);
    const owner = { orgId: member.organization.id };
    const named = { id: uuidParameter(request.params, 'key_id'), nowMs: member.metadata.nowMs };
    const { grace } = request.body;
    const { key, text } = await changeKeys(context, member, async (locked) => {
      const old = await getOwnKeyForChange(locked, owner, named);
      return rotateApiKey(locked, { old, grace, maxKeys, byMember: true }, member);
    });
    return reply.code(201).send({ ...toOwnKeyJson(key), key: text });
  });
};
