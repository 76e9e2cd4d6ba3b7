import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Settings } from '../config/settings.ts';
import { errors, shorten } from '../errors.ts';
import {
  type AddRoutes,
  allowMissingBody,
  body,
  bodyLimits,
  optionalFlag,
  optionalText,
  uuidParameter,
} from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import type { AdminRequest } from '../sessions/admin-request.ts';
import { requireRecentSignIn, requireSecondFactor } from '../sessions/assurance.ts';
import { authenticatePermanentUser } from '../sessions/authenticate.ts';
import type { User } from '../users/user.ts';
import { type ApiKey, toKeyJson } from './api-key.ts';
import type { ApiKeysContext } from './context.ts';
import type { KeyInput } from './input.ts';
import {
  createApiKey,
  getOwnKey,
  getOwnKeyForChange,
  requireApiKeys,
  revokeApiKey,
  rotateApiKey,
  updateApiKey,
} from './keys.ts';

const texts = Type.Optional(Type.Array(Type.String()));
export const ownKeyBody = body({
  name: optionalText,
  scopes: texts,
  expires_at: optionalText,
  allowed_networks: texts,
  disabled: optionalFlag,
});
export const rotateBody = body({ grace: optionalText });
const params = Type.Object({ key_id: Type.String() });

/** The user who manages own keys. */
interface KeyUser {
  readonly user: User;
  readonly request: AdminRequest;
}

/** `/user/api-keys` */
export const addApiKeyRoutes: AddRoutes<ApiKeysContext> = (api, context) => {
  const { store, settings } = context;
  const { apiKeysPerUser: maxKeys } = settings;
  const path = '/user/api-keys';
  const one = `${path}/:key_id`;
  const bodyLimit = bodyLimits.contact;

  api.get(path, async (request, reply) => {
    requireSelfService(context);
    const { user } = await authenticatePermanentUser(request, context);
    const keys = await store.apiKeys.listOwned(user.id);
    return reply.send({ api_keys: keys.map(toOwnKeyJson) });
  });

  api.post(path, { schema: { body: ownKeyBody }, bodyLimit }, async (request, reply) => {
    const { user, request: ownRequest } = await authenticateForChange(request, context);
    const input = readOwnInput(request.body, settings);
    const { key, text } = await createApiKey(
      context,
      { owner: { userId: user.id }, input, maxKeys },
      ownRequest,
    );
    return reply.code(201).send({ ...toOwnKeyJson(key), key: text });
  });

  api.get(one, { schema: { params } }, async (request, reply) => {
    requireSelfService(context);
    const { user } = await authenticatePermanentUser(request, context);
    return reply.send(toOwnKeyJson(await getOwnKey(context, { userId: user.id }, keyId(request.params))));
  });

  api.patch(one, { schema: { params, body: ownKeyBody }, bodyLimit }, async (request, reply) => {
    const { user, request: ownRequest } = await authenticateForChange(request, context);
    const { nowMs } = ownRequest.metadata;
    const before = await getOwnKeyForChange(
      context,
      { userId: user.id },
      { id: keyId(request.params), nowMs },
    );
    const change = { input: readOwnInput(request.body, settings), request: ownRequest };
    return reply.send(toOwnKeyJson(await updateApiKey(context, before, change)));
  });

  // A session that may not create keys may still stop one.
  api.delete(one, { schema: { params } }, async (request, reply) => {
    requireSelfService(context);
    const { user } = await authenticatePermanentUser(request, context);
    const key = await getOwnKey(context, { userId: user.id }, keyId(request.params));
    await revokeApiKey(context, key, { actor: user, metadata: requestMetadata(request, context) });
    return reply.code(204).send();
  });

  const rotation = { schema: { params, body: rotateBody }, preValidation: allowMissingBody };
  api.post(`${one}/rotate`, rotation, async (request, reply) => {
    const { user, request: ownRequest } = await authenticateForChange(request, context);
    const { nowMs } = ownRequest.metadata;
    const old = await getOwnKeyForChange(context, { userId: user.id }, { id: keyId(request.params), nowMs });
    const { grace } = request.body;
    const { key, text } = await rotateApiKey(context, { old, grace, maxKeys }, ownRequest);
    return reply.code(201).send({ ...toOwnKeyJson(key), key: text });
  });
};

/** @throws AppError `feature_disabled` */
export function requireSelfService(context: ApiKeysContext): void {
  requireApiKeys(context);
  if (!context.settings.apiKeysSelfService)
    throw errors.feature_disabled({ message: 'Users cannot manage API keys', httpStatus: 404 });
}

/**
 * A key outlives the session, so a thief of the session must not be able to create one.
 *
 * @throws AppError `insufficient_aal`, `reauthentication_needed` and others
 */
async function authenticateForChange(request: FastifyRequest, context: ApiKeysContext): Promise<KeyUser> {
  requireSelfService(context);
  const caller = await authenticatePermanentUser(request, context);
  requireKeyAssurance(context, caller);
  return {
    user: caller.user,
    request: { actor: caller.user, metadata: requestMetadata(request, context) },
  };
}

/** @throws AppError `insufficient_aal`, `reauthentication_needed` */
export function requireKeyAssurance(
  context: ApiKeysContext,
  caller: Pick<Awaited<ReturnType<typeof authenticatePermanentUser>>, 'user' | 'session'>,
): void {
  const message = 'API keys require a session with a second factor.';
  requireSecondFactor(caller.user, caller.session, { message });
  if (caller.session.aal < context.settings.apiKeysAal) throw errors.insufficient_aal({ message });
  requireRecentSignIn(context, caller);
}

/** @throws AppError `validation_failed` */
function keyId(parameters: Static<typeof params>): string {
  return uuidParameter(parameters, 'key_id');
}

/**
 * Rights of keys are for administrators, so only these members are taken: bodies keep unknown ones.
 *
 * @throws AppError `validation_failed`
 */
export function readOwnInput(
  { name, scopes, expires_at, allowed_networks, disabled }: Static<typeof ownKeyBody>,
  { apiKeyScopes }: Pick<Settings, 'apiKeyScopes'>,
): KeyInput {
  const other = scopes?.find((scope) => !apiKeyScopes.includes(scope));
  if (other !== undefined)
    throw errors.validation_failed({
      message: `scopes: ${JSON.stringify(shorten(other))} is not one that users may give to their keys`,
    });
  return { name, scopes, expires_at, allowed_networks, disabled };
}

/** A key as its owner, or a member of it, sees it. */
export function toOwnKeyJson(key: ApiKey) {
  const { admin_scopes: _rights, created_by: _actor, ...shown } = toKeyJson(key);
  return shown;
}
