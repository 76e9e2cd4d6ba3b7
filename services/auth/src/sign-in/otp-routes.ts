import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { errors } from '../errors.ts';
import type { AddRoutes } from '../http/api.ts';
import { body, optionalObject, optionalText } from '../http/api.ts';
import { bodyLimits } from '../http/body.ts';
import { redirectTarget } from '../http/redirects.ts';
import { requestedAudience, requestMetadata } from '../http/request-metadata.ts';
import type { JsonObject } from '../users/user-json.ts';
import { createRecover, createSendOtp } from './otp.ts';
import { readCodeChallenge } from './pkce.ts';
import { createResend } from './resend.ts';

const challenge = { code_challenge: optionalText, code_challenge_method: optionalText };
const emailBody = body({ email: optionalText, data: optionalObject, ...challenge });
const otpBody = body({
  email: optionalText,
  phone: optionalText,
  create_user: Type.Optional(Type.Boolean()),
  data: optionalObject,
  channel: optionalText,
  ...challenge,
});
const resendBody = body({ type: optionalText, email: optionalText, phone: optionalText, ...challenge });

const limiter = { config: { limiter: 'otp' } } as const;
const withContact = { ...limiter, bodyLimit: bodyLimits.contact } as const;
const withMetadata = { ...limiter, bodyLimit: bodyLimits.metadata } as const;

/** What is sent to somebody so that they can sign in: `/otp`, its predecessor `/magiclink`, `/recover`, and once more `/resend`. */
export const addOtpRoutes: AddRoutes = (api, deps) => {
  const sendOtp = createSendOtp(deps);
  const recover = createRecover(deps);
  const resend = createResend(deps);

  api.post('/otp', { schema: { body: otpBody }, ...withMetadata }, async (request, reply) => {
    const { email, phone, create_user: createUser, channel } = request.body;
    const input = {
      ...{ email, phone, createUser, channel },
      data: request.body.data as JsonObject | undefined, // it came as JSON
      challenge: readCodeChallenge(request.body),
      redirectTo: redirectTarget(request, undefined, deps),
      aud: requestedAudience(request, deps),
    };
    return sendMessageId(reply, await sendOtp(input, requestMetadata(request, deps)));
  });

  api.post('/magiclink', { schema: { body: emailBody }, ...withMetadata }, async (request, reply) => {
    const { email = '' } = request.body;
    if (email === '')
      throw errors.validation_failed({ httpStatus: 422, message: 'Password recovery requires an email' });
    const input = {
      email,
      data: request.body.data as JsonObject | undefined, // it came as JSON
      challenge: readCodeChallenge(request.body),
      redirectTo: redirectTarget(request, undefined, deps),
      aud: requestedAudience(request, deps),
    };
    return sendMessageId(reply, await sendOtp(input, requestMetadata(request, deps)));
  });

  api.post('/recover', { schema: { body: emailBody }, ...withContact }, async (request, reply) => {
    const input = {
      email: request.body.email,
      challenge: readCodeChallenge(request.body),
      redirectTo: redirectTarget(request, undefined, deps),
      aud: requestedAudience(request, deps),
    };
    await recover(input, requestMetadata(request, deps));
    return reply.send({});
  });

  api.post('/resend', { schema: { body: resendBody }, ...withContact }, async (request, reply) => {
    const { type, email, phone } = request.body;
    const input = {
      ...{ type, email, phone },
      challenge: readCodeChallenge(request.body),
      redirectTo: redirectTarget(request, undefined, deps),
      aud: requestedAudience(request, deps),
    };
    return sendMessageId(reply, await resend(input, requestMetadata(request, deps)));
  });
};

function sendMessageId(reply: FastifyReply, { messageId }: { readonly messageId?: string }): FastifyReply {
  return reply.send(messageId === undefined ? {} : { message_id: messageId });
}
