import type { JsonObject } from '@tollgate/kit/json';
import type { FastifyRequest } from 'fastify';
import type { Type } from 'typebox';
import { parseCodeChallenge } from '../flows/pkce.ts';
import { type AddRoutes, body, bodyLimits, optionalObject, optionalText } from '../http/api.ts';
import { redirectTarget } from '../http/redirects.ts';
import { requestedAudience, requestMetadata } from '../http/request-metadata.ts';
import type { ClientLimit } from '../limits/table.ts';
import { sendSession } from '../sessions/response.ts';
import { toUserJson } from '../users/user.ts';
import { type SignUpContext, signUp, signUpAnonymously } from './sign-up.ts';

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
export const addSignUpRoutes: AddRoutes<SignUpContext> = (api, context) => {
  api.post(
    '/signup',
    {
      schema: { body: signUpBody },
      config: { limiter: chooseLimiter, captcha: () => true },
      bodyLimit: bodyLimits.metadata,
    },
    async (request, reply) => {
      const { email, phone, password, channel } = request.body;
      const data = request.body.data as JsonObject | undefined; // parsed from JSON
      const aud = requestedAudience(request, context);
      const metadata = requestMetadata(request, context);
      if (isAnonymous(request.body))
        return sendSession(reply, await signUpAnonymously(context, { data, aud }, metadata));
      const challenge = parseCodeChallenge(request.body);
      const redirectTo = redirectTarget(request, undefined, context);
      const input = { email, phone, password, data, channel, challenge, redirectTo, aud };
      const result = await signUp(context, input, metadata);
      return result.kind === 'session'
        ? sendSession(reply, result.session)
        : reply.send(toUserJson(result.user));
    },
  );
};

function isAnonymous({ email = '', phone = '' }: { email?: string; phone?: string }): boolean {
  return email === '' && phone === '';
}

/** Runs after the schema validation. */
function chooseLimiter({ body }: FastifyRequest): ClientLimit {
  return isAnonymous(body as Type.Static<typeof signUpBody>) ? 'anonymous' : 'otp';
}
