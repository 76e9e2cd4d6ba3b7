import type { FastifyRequest } from 'fastify';
import type { JsonObject } from '../../../domain/json.ts';
import { toUserJson } from '../../../domain/user-json.ts';
import { errors } from '../../../errors.ts';
import { readCodeChallenge } from '../../../use-cases/pkce/read-code-challenge.ts';
import { createSendNonce } from '../../../use-cases/reauthentication/send-nonce.ts';
import { createUpdateOwnUser } from '../../../use-cases/users/update-own-user.ts';
import type { AddRoutes, RouteDeps } from '../api.ts';
import { authenticateUser, type Caller } from '../authenticate.ts';
import { bodyLimits } from '../body-limits.ts';
import { redirectTarget } from '../redirect-target.ts';
import { requestFacts } from '../request-facts.ts';
import { body, optionalObject, optionalText } from '../schemas.ts';

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

/** `/user`: the caller; `/reauthenticate`: a nonce for them. */
export const addUserRoutes: AddRoutes = (api, deps) => {
  const updateOwnUser = createUpdateOwnUser(deps);
  const sendNonce = createSendNonce(deps);

  api.get('/user', async (request, reply) => {
    const { user } = await authenticateForAudience(request, deps);
    return reply.send(toUserJson(user));
  });

  const schema = { body: updateBody };
  api.put(
    '/user',
    { schema, config: { limiter: 'otp' }, bodyLimit: bodyLimits.metadata },
    async (request, reply) => {
      const caller = await authenticateForAudience(request, deps);
      const { email, phone, password, current_password: currentPassword, nonce, channel } = request.body;
      const input = {
        ...{ email, phone, password, currentPassword, nonce, channel },
        data: request.body.data as JsonObject | undefined, // they came as JSON
        appMetadata: request.body.app_metadata as JsonObject | undefined,
        challenge: readCodeChallenge(request.body),
        redirectTo: redirectTarget(request, undefined, deps),
      };
      return reply.send(toUserJson(await updateOwnUser(caller, input, requestFacts(request, deps))));
    },
  );

  api.get('/reauthenticate', async (request, reply) => {
    const { user } = await authenticateUser(request, deps);
    const { messageId } = await sendNonce(user, requestFacts(request, deps));
    return reply.send(messageId === undefined ? {} : { message_id: messageId });
  });
};

async function authenticateForAudience(request: FastifyRequest, deps: RouteDeps): Promise<Caller> {
  const caller = await authenticateUser(request, deps);
  const { aud } = caller.claims;
  if ((request.headers['x-jwt-aud'] ?? aud) !== aud)
    throw errors.validation_failed({ message: "Token audience doesn't match request audience" });
  return caller;
}
