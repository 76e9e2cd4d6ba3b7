import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import { type AddRoutes, body, isUuid, optionalText, uuidParameter } from '../http/api.ts';
import { authenticateUser } from '../http/authenticate.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { sendSession } from '../sessions/issue.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import { challengeFactor, type EnrolledTotp, enrollTotp, unenrollFactor } from './factors.ts';
import { verifyFactor } from './verify.ts';

const enrollBody = body({ factor_type: optionalText, friendly_name: optionalText, issuer: optionalText });
const verifyBody = body({ challenge_id: optionalText, code: optionalText });
const params = Type.Object({ factor_id: Type.String() });

/**
 * `/factors`: second factors of the caller. Not for anonymous users, as recovery needs an email.
 */
export const addFactorRoutes: AddRoutes = (api, context) => {
  api.post('/factors', { schema: { body: enrollBody } }, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    const { factor_type: type, friendly_name: friendlyName, issuer } = request.body;
    checkFactorType(type);
    const enrolled = await enrollTotp(
      context,
      caller,
      { friendlyName, issuer },
      requestMetadata(request, context),
    );
    return reply.send(toEnrolledJson(enrolled));
  });

  const config = { limiter: 'factor' } as const;
  api.post('/factors/:factor_id/challenge', { schema: { params }, config }, async (request, reply) => {
    const { user } = await authenticatePermanentUser(request, context);
    const factorId = uuidParameter(request.params, 'factor_id');
    const challenge = await challengeFactor(context, { user, factorId }, requestMetadata(request, context));
    return reply.send({ id: challenge.id, type: challenge.type, expires_at: challenge.expiresAt });
  });

  api.post(
    '/factors/:factor_id/verify',
    { schema: { params, body: verifyBody }, config },
    async (request, reply) => {
      const caller = await authenticatePermanentUser(request, context);
      const factorId = uuidParameter(request.params, 'factor_id');
      const { challenge_id: challengeId = '', code = '' } = request.body;
      if (!isUuid(challengeId)) throw errors.validation_failed({ message: 'challenge_id must be an UUID' });
      const verified = await verifyFactor(
        context,
        { ...caller, factorId, challengeId, code },
        requestMetadata(request, context),
      );
      return sendSession(reply, verified);
    },
  );

  api.delete('/factors/:factor_id', { schema: { params } }, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    const factorId = uuidParameter(request.params, 'factor_id');
    const { id } = await unenrollFactor(context, { ...caller, factorId }, requestMetadata(request, context));
    return reply.send({ id });
  });
};

async function authenticatePermanentUser(
  request: FastifyRequest,
  context: Context,
): Promise<{ user: User; session: Session }> {
  const { user, session } = await authenticateUser(request, context);
  if (user.isAnonymous)
    throw errors.no_authorization({
      message: 'Anonymous user not allowed to perform these actions',
      httpStatus: 403,
    });
  if (session === undefined) throw errors.session_not_found();
  return { user, session };
}

function checkFactorType(type: string | undefined): void {
  if (type === 'phone') throw errors.mfa_phone_enroll_not_enabled();
  if (type === 'webauthn') throw errors.mfa_webauthn_enroll_not_enabled();
  if (type !== 'totp')
    throw errors.validation_failed({ message: 'factor_type needs to be totp, phone, or webauthn' });
}

function toEnrolledJson({ id, friendlyName, secret, uri, qrCode }: EnrolledTotp) {
  return {
    id,
    type: 'totp',
    ...(friendlyName !== '' && { friendly_name: friendlyName }),
    totp: { qr_code: qrCode, secret, uri },
  };
}
