import { Type } from 'typebox';
import { errors } from '../errors.ts';
import { type AddRoutes, body, bodyLimits, optionalText, uuidParameter } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { checkRoles, readAdminRequest, userAuditEntry } from '../sessions/admin-request.ts';
import { authenticatePermanentUser } from '../sessions/authenticate.ts';
import { sendSession } from '../sessions/response.ts';
import { getUser } from '../users/save-user.ts';
import type { IssuedPasskeyChallenge, PasskeyResponse } from './challenges.ts';
import type { PasskeysContext } from './context.ts';
import {
  finishRegistration,
  removeOwnPasskey,
  removePasskey,
  renamePasskey,
  startRegistration,
} from './passkeys.ts';
import { finishSignIn, startSignIn } from './sign-in.ts';
import type { Passkey } from './store.ts';

const responseBody = body({
  challenge_id: optionalText,
  credential: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
const renameBody = body({ friendly_name: optionalText });
const params = Type.Object({ passkey_id: Type.String() });
const adminParams = Type.Object({ user_id: Type.String() });
const adminPasskeyParams = Type.Object({ user_id: Type.String(), passkey_id: Type.String() });

/** Rejects before the body is read. */
function requireEnabled({ settings }: PasskeysContext) {
  return (_request: unknown, _reply: unknown, done: (error?: Error) => void): void =>
    done(settings.passkeyEnabled ? undefined : errors.passkey_disabled());
}

/** Registration of passkeys and sign-in with them, below `/passkeys` */
export const addPasskeyRoutes: AddRoutes<PasskeysContext> = (api, context) => {
  const onRequest = requireEnabled(context);
  // A response needs a challenge, so limits of challenges limit responses, too.
  const config = { limiter: 'passkey' } as const;
  const response = { schema: { body: responseBody }, bodyLimit: bodyLimits.contact, onRequest };

  const signInConfig = { ...config, captcha: () => true };
  api.post(
    '/passkeys/authentication/options',
    { config: signInConfig, onRequest, bodyLimit: bodyLimits.contact },
    async (request, reply) =>
      reply.send(toChallengeJson(await startSignIn(context, requestMetadata(request, context)))),
  );

  api.post('/passkeys/authentication/verify', response, async (request, reply) =>
    sendSession(
      reply,
      await finishSignIn(context, readResponse(request.body), requestMetadata(request, context)),
    ),
  );

  api.post('/passkeys/registration/options', { config, onRequest }, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    return reply.send(
      toChallengeJson(await startRegistration(context, caller, requestMetadata(request, context))),
    );
  });

  api.post('/passkeys/registration/verify', response, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    const received = readResponse(request.body);
    const passkey = await finishRegistration(context, caller, received, requestMetadata(request, context));
    return reply.send(toPasskeyJson(passkey));
  });
};

/** `/passkeys`, and `/admin/users/:user_id/passkeys` */
export const addPasskeyManagementRoutes: AddRoutes<PasskeysContext> = (api, context) => {
  const { store } = context;
  const onRequest = requireEnabled(context);

  api.get('/passkeys', { onRequest }, async (request, reply) => {
    const { user } = await authenticatePermanentUser(request, context);
    return reply.send((await store.passkeys.list(user.id)).map(toPasskeyJson));
  });

  api.patch(
    '/passkeys/:passkey_id',
    { schema: { params, body: renameBody }, onRequest },
    async (request, reply) => {
      const { user } = await authenticatePermanentUser(request, context);
      const id = uuidParameter(request.params, 'passkey_id');
      const { friendly_name: friendlyName = '' } = request.body;
      const passkey = await renamePasskey(
        context,
        { user, id, friendlyName },
        requestMetadata(request, context),
      );
      return reply.send(toPasskeyJson(passkey));
    },
  );

  api.delete('/passkeys/:passkey_id', { schema: { params }, onRequest }, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    const id = uuidParameter(request.params, 'passkey_id');
    await removeOwnPasskey(context, { ...caller, id }, requestMetadata(request, context));
    return reply.code(204).send();
  });

  const adminPath = '/admin/users/:user_id/passkeys';
  api.get(adminPath, { schema: { params: adminParams }, onRequest }, async (request, reply) => {
    await readAdminRequest(request, context);
    const user = await getUser(store, uuidParameter(request.params, 'user_id'));
    return reply.send((await store.passkeys.list(user.id)).map(toPasskeyJson));
  });

  api.delete(
    `${adminPath}/:passkey_id`,
    { schema: { params: adminPasskeyParams }, onRequest },
    async (request, reply) => {
      const adminRequest = await readAdminRequest(request, context);
      const user = await getUser(store, uuidParameter(request.params, 'user_id'));
      checkRoles(adminRequest, [user.role], context.settings);
      const id = uuidParameter(request.params, 'passkey_id');
      const audit = userAuditEntry(adminRequest, 'passkey_deleted', user, { passkey_id: id });
      await removePasskey(context, { user, id }, audit);
      return reply.code(204).send();
    },
  );
};

function readResponse({
  challenge_id: challengeId = '',
  credential,
}: Type.Static<typeof responseBody>): PasskeyResponse {
  if (challengeId === '') throw errors.validation_failed({ message: 'challenge_id is required' });
  if (credential === undefined) throw errors.validation_failed({ message: 'credential is required' });
  return { challengeId, credential };
}

function toChallengeJson({ id, options, expiresAtMs }: IssuedPasskeyChallenge) {
  return { challenge_id: id, options, expires_at: Math.floor(expiresAtMs / 1000) };
}

export function toPasskeyJson({ id, friendlyName, createdAt, lastUsedAt }: Passkey) {
  return {
    id,
    ...(friendlyName !== '' && { friendly_name: friendlyName }),
    created_at: createdAt.toISOString(),
    ...(lastUsedAt && { last_used_at: lastUsedAt.toISOString() }),
  };
}
