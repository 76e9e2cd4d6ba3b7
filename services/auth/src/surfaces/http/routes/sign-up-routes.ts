import type { JsonObject } from '../../../domain/json.ts';
import { toUserJson } from '../../../domain/user-json.ts';
import { createSignUp } from '../../../use-cases/sign-up/sign-up.ts';
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
  api.post(
    '/signup',
    { schema: { body: signUpBody }, config: { limiter: 'otp' } },
    async (request, reply) => {
      const { email, phone, password, data } = request.body;
      const input = { email, phone, password, data: data as JsonObject | undefined }; // it came as JSON
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
