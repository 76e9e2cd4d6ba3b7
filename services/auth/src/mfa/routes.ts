import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { AddRoutes } from '../http/api.ts';
import { body, isUuid, optionalText, uuidParameter } from '../http/api.ts';
import { authenticateUser } from '../http/authenticate.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { sendSession } from '../sessions/session-json.ts';
import type { Session } from '../sessions/sessions.ts';
import type { User } from '../users/user.ts';
import { createEnrollTotp, type EnrolledTotp } from './enroll.ts';
import { createChallengeFactor, createUnenrollFactor } from './factors.ts';
import { createVerifyFactor } from './verify.ts';

const enrollBody = body({ factor_type: optionalText, friendly_name: optionalText, issuer: optionalText });
const verifyBody = body({ challenge_id: optionalText, code: optionalText });
const factorParams = Type.Object({ factor_id: Type.String() });

/** `/factors`: second factors of the caller. Recovery starts at a mail, so anonymous users, who have none, have no factors. */
export const addFactorRoutes: AddRoutes = (api, deps) => {
  const enrollTotp = createEnrollTotp(deps);
  const challengeFactor = createChallengeFactor(deps);
  const verifyFactor = createVerifyFactor(deps);
  const unenrollFactor = createUnenrollFactor(deps);
  const params = factorParams;

  api.post('/factors', { schema: { body: enrollBody } }, async (request, reply) => {
    const who = await permanentUser(request, deps);
    const { factor_type: type, friendly_name: friendlyName, issuer } = request.body;
    checkType(type);
    const enrolled = await enrollTotp(who, { friendlyName, issuer }, requestMetadata(request, deps));
    return reply.send(enrolledReply(enrolled));
  });

  const limited = { limiter: 'factor' } as const;
  api.post(
    '/factors/:factor_id/challenge',
    { schema: { params }, config: limited },
    async (request, reply) => {
      const { user } = await permanentUser(request, deps);
      const factorId = uuidParameter(request.params, 'factor_id');
      const challenge = await challengeFactor({ user, factorId }, requestMetadata(request, deps));
      return reply.send({ id: challenge.id, type: challenge.type, expires_at: challenge.expiresAt });
    },
  );

  api.post(
    '/factors/:factor_id/verify',
    { schema: { params, body: verifyBody }, config: limited },
    async (request, reply) => {
      const who = await permanentUser(request, deps);
      const factorId = uuidParameter(request.params, 'factor_id');
      const { challenge_id: challengeId = '', code = '' } = request.body;
      if (!isUuid(challengeId)) throw errors.validation_failed({ message: 'challenge_id must be an UUID' });
      const verified = await verifyFactor(
        { ...who, factorId, challengeId, code },
        requestMetadata(request, deps),
      );
      return sendSession(reply, verified);
    },
  );

  api.delete('/factors/:factor_id', { schema: { params } }, async (request, reply) => {
    const who = await permanentUser(request, deps);
    const factorId = uuidParameter(request.params, 'factor_id');
    const { id } = await unenrollFactor({ ...who, factorId }, requestMetadata(request, deps));
    return reply.send({ id });
  });
};

async function permanentUser(
  request: FastifyRequest,
  deps: Context,
): Promise<{ user: User; session: Session }> {
  const { user, session } = await authenticateUser(request, deps);
  if (user.isAnonymous)
    throw errors.no_authorization({
      message: 'Anonymous user not allowed to perform these actions',
      httpStatus: 403,
    });
  if (session === undefined) throw errors.session_not_found();
  return { user, session };
}

function checkType(type: string | undefined): void {
  if (type === 'phone') throw errors.mfa_phone_enroll_not_enabled();
  if (type === 'webauthn') throw errors.mfa_webauthn_enroll_not_enabled();
  if (type !== 'totp')
    throw errors.validation_failed({ message: 'factor_type needs to be totp, phone, or webauthn' });
}

function enrolledReply({ id, friendlyName, secret, uri, qrCode }: EnrolledTotp) {
  return {
    id,
    type: 'totp',
    ...(friendlyName !== '' && { friendly_name: friendlyName }),
    totp: { qr_code: qrCode, secret, uri },
  };
}
