import type { FastifyRequest } from 'fastify';
import type { Type } from 'typebox';
import type { JsonObject } from '../../../domain/json.ts';
import type { Limiter } from '../../../domain/limiters.ts';
import { toUserJson } from '../../../domain/user-json.ts';
import { createSignUp } from '../../../use-cases/sign-up/sign-up.ts';
import { createSignUpAnonymously } from '../../../use-cases/sign-up/sign-up-anonymously.ts';
import type { AddRoutes } from '../api.ts';
import { requestedAudience, requestFacts } from '../request-facts.ts';
import { body, optionalObject, optionalText } from '../schemas.ts';
import { sendSession } from '../session-reply.ts';

const signUpBody = body({
  email: optionalText,
  phone: optionalText,
  password: optionalText,
  data: optionalObject,
});

/** `/signup` */
export const addSignUpRoutes: AddRoutes = (api, deps) => {
  const signUp = createSignUp(deps);
  const signUpAnonymously = createSignUpAnonymously(deps);
  api.post(
    '/signup',
    { schema: { body: signUpBody }, config: { limiter: limiterOf } },
    async (request, reply) => {
      const { email, phone, password, data } = request.body;
      const input = { email, phone, password, data: data as JsonObject | undefined }; // it came as JSON
      if (isAnonymous(request.body)) {
        const aud = requestedAudience(request, deps);
        const anonymous = await signUpAnonymously({ data: input.data, aud }, requestFacts(request, deps));
        return sendSession(reply, anonymous);
      }
      const result = await signUp(
        { ...input, aud: requestedAudience(request, deps) },
        requestFacts(request, deps),
      );
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
