import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors } from '../errors.ts';
import { type AddRoutes, body, optionalObject, optionalText } from '../http/api.ts';
import { bodyLimits } from '../http/body.ts';
import { redirectTarget } from '../http/redirects.ts';
import { requestedAudience, requestMetadata } from '../http/request-metadata.ts';
import type { JsonObject } from '../users/user.ts';
import { recover, sendOtp } from './otp.ts';
import { parseCodeChallenge } from './pkce.ts';
import { resend } from './resend.ts';

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

/**
 * Routes that send a link or a code: `/otp`, its predecessor `/magiclink`, `/recover`, `/resend`.
 */
export const addOtpRoutes: AddRoutes = (api, context) => {
  const commonInput = (request: FastifyRequest, members: Parameters<typeof parseCodeChallenge>[0]) => ({
    challenge: parseCodeChallenge(members),
    redirectTo: redirectTarget(request, undefined, context),
    aud: requestedAudience(request, context),
  });

  api.post('/otp', { schema: { body: otpBody }, ...withMetadata }, async (request, reply) => {
    const { email, phone, create_user: createUser, channel } = request.body;
    const data = request.body.data as JsonObject | undefined; // parsed from JSON
    const input = { email, phone, createUser, channel, data, ...commonInput(request, request.body) };
    return sendMessageId(reply, await sendOtp(context, input, requestMetadata(request, context)));
  });

  api.post('/magiclink', { schema: { body: emailBody }, ...withMetadata }, async (request, reply) => {
    const { email = '' } = request.body;
    if (email === '')
      throw errors.validation_failed({ httpStatus: 422, message: 'Password recovery requires an email' });
    const data = request.body.data as JsonObject | undefined; // parsed from JSON
    const input = { email, data, ...commonInput(request, request.body) };
    return sendMessageId(reply, await sendOtp(context, input, requestMetadata(request, context)));
  });

  api.post('/recover', { schema: { body: emailBody }, ...withContact }, async (request, reply) => {
    const input = { email: request.body.email, ...commonInput(request, request.body) };
    await recover(context, input, requestMetadata(request, context));
    return reply.send({});
  });

  api.post('/resend', { schema: { body: resendBody }, ...withContact }, async (request, reply) => {
    const { type, email, phone } = request.body;
    const input = { type, email, phone, ...commonInput(request, request.body) };
    return sendMessageId(reply, await resend(context, input, requestMetadata(request, context)));
  });
};

function sendMessageId(reply: FastifyReply, { messageId }: { readonly messageId?: string }): FastifyReply {
  return reply.send(messageId === undefined ? {} : { message_id: messageId });
}
