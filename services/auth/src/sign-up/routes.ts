import type { FastifyRequest } from 'fastify';
import type { Type } from 'typebox';
import type { AddRoutes } from '../http/api.ts';
import { body, optionalObject, optionalText } from '../http/api.ts';
import { bodyLimits } from '../http/body.ts';
import type { Limiter } from '../http/rate-limits.ts';
import { redirectTarget } from '../http/redirects.ts';
import { requestedAudience, requestMetadata } from '../http/request-metadata.ts';
import { sendSession } from '../sessions/session-json.ts';
import { readCodeChallenge } from '../sign-in/pkce.ts';
import type { JsonObject } from '../users/user-json.ts';
import { toUserJson } from '../users/user-json.ts';
import { createSignUpAnonymously } from './anonymous.ts';
import { createSignUp } from './sign-up.ts';

const signUpBody = body({
  email: optionalText,
  phone: optionalText,
  password: optionalText,
  data: optionalObject,
  channel: optionalText,
  code_challenge: optionalText,
  code_challenge_method: optionalText,
});

/** `/signup` */
export const addSignUpRoutes: AddRoutes = (api, deps) => {
  const signUp = createSignUp(deps);
  const signUpAnonymously = createSignUpAnonymously(deps);
  api.post(
    '/signup',
    { schema: { body: signUpBody }, config: { limiter: limiterOf }, bodyLimit: bodyLimits.metadata },
    async (request, reply) => {
      const { email, phone, password, channel } = request.body;
      const data = request.body.data as JsonObject | undefined; // it came as JSON
      const aud = requestedAudience(request, deps);
      const metadata = requestMetadata(request, deps);
      if (isAnonymous(request.body))
        return sendSession(reply, await signUpAnonymously({ data, aud }, metadata));
      const challenge = readCodeChallenge(request.body);
      const redirectTo = redirectTarget(request, undefined, deps);
      const input = { email, phone, password, data, channel, challenge, redirectTo, aud };
      const result = await signUp(input, metadata);
      return result.kind === 'session'
        ? sendSession(reply, result.session)
        : reply.send(toUserJson(result.user));
    },
  );
};

function isAnonymous({ email = '', phone = '' }: { email?: string; phone?: string }): boolean {
  return email === '' && phone === '';
}

/** The schema has been checked before limits are asked. */
function limiterOf({ body }: FastifyRequest): Limiter {
  return isAnonymous(body as Type.Static<typeof signUpBody>) ? 'anonymous' : 'otp';
}
