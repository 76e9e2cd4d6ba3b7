import type { JsonObject } from '@tollgate/kit/json';
import type { FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import { parseCodeChallenge } from '../flows/pkce.ts';
import { type AddRoutes, body, bodyLimits, optionalObject, optionalText } from '../http/api.ts';
import { redirectTarget } from '../http/redirects.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { authenticateUser, type Caller } from '../sessions/authenticate.ts';
import { toUserJson } from '../users/user.ts';
import { confirmSession } from './change-password.ts';
import type { AccountContext } from './context.ts';
import { sendNonce } from './reauthentication.ts';
import { updateOwnUser } from './update.ts';

const updateBody = body({
  email: optionalText,
  phone: optionalText,
  password: optionalText,
  current_password: optionalText,
  nonce: optionalText,
  data: optionalObject,
  app_metadata: optionalObject,
  channel: optionalText,
  code_challenge: optionalText,
  code_challenge_method: optionalText,
});

const confirmationBody = body({ current_password: optionalText, nonce: optionalText });

/** `/user` and `/reauthenticate` */
export const addUserRoutes: AddRoutes<AccountContext> = (api, context) => {
  api.get('/user', { config: { oauthClients: true } }, async (request, reply) => {
    const { user } = await authenticateForAudience(request, context);
    return reply.send(toUserJson(user));
  });

  const schema = { body: updateBody };
  api.put(
    '/user',
    { schema, config: { limiter: 'otp' }, bodyLimit: bodyLimits.metadata },
    async (request, reply) => {
      const caller = await authenticateForAudience(request, context);
      const { email, phone, password, current_password: currentPassword, nonce, channel } = request.body;
      const input = {
        ...{ email, phone, password, currentPassword, nonce, channel },
        data: request.body.data as JsonObject | undefined, // parsed from JSON
        appMetadata: request.body.app_metadata as JsonObject | undefined,
        challenge: parseCodeChallenge(request.body),
        redirectTo: redirectTarget(request, undefined, context),
      };
      return reply.send(
        toUserJson(await updateOwnUser(context, caller, input, requestMetadata(request, context))),
      );
    },
  );

  api.get('/reauthenticate', async (request, reply) => {
    const { user } = await authenticateUser(request, context);
    const { messageId } = await sendNonce(context, user, requestMetadata(request, context));
    return reply.send(messageId === undefined ? {} : { message_id: messageId });
  });

  api.post(
    '/reauthenticate',
    { schema: { body: confirmationBody }, config: { limiter: 'otp' } },
    async (request, reply) => {
      const caller = await authenticateUser(request, context);
      const { current_password: currentPassword, nonce } = request.body;
      const metadata = requestMetadata(request, context);
      await confirmSession(context, { ...caller, currentPassword, nonce }, metadata);
      return reply.send({});
    },
  );
};

async function authenticateForAudience(request: FastifyRequest, context: AccountContext): Promise<Caller> {
  const caller = await authenticateUser(request, context);
  const { aud } = caller.claims;
  if ((request.headers['x-jwt-aud'] ?? aud) !== aud)
    throw errors.validation_failed({ message: "Token audience doesn't match request audience" });
  return caller;
}
