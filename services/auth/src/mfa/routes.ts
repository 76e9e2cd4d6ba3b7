import { isUuid } from '@tollgate/kit/text';
import { Type } from 'typebox';
import { errors } from '../errors.ts';
import {
  type AddRoutes,
  allowMissingBody,
  body,
  bodyLimits,
  optionalObject,
  optionalText,
  uuidParameter,
} from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { authenticatePermanentUser } from '../sessions/authenticate.ts';
import { sendSession } from '../sessions/response.ts';
import type { MfaContext } from './context.ts';
import { readFactorType } from './factor-types.ts';
import { challengeFactor, enrollFactor, unenrollFactor } from './factors.ts';
import { verifyFactor } from './verify.ts';

const enrollBody = body({
  factor_type: optionalText,
  friendly_name: optionalText,
  issuer: optionalText,
  phone: optionalText,
});
const challengeBody = body({ channel: optionalText });
const verifyBody = body({
  challenge_id: optionalText,
  code: optionalText,
  webauthn: Type.Optional(Type.Object({ type: optionalText, credential_response: optionalObject })),
});
const params = Type.Object({ factor_id: Type.String() });

/**
 * `/factors`: second factors of the caller. Not for anonymous users, as recovery needs an email.
 */
export const addFactorRoutes: AddRoutes<MfaContext> = (api, context) => {
  api.post('/factors', { schema: { body: enrollBody } }, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    const { factor_type, friendly_name: friendlyName, ...body } = request.body;
    const type = readFactorType(factor_type);
    const { id, ...enrolled } = await enrollFactor(
      context,
      caller,
      { type, friendlyName, body },
      requestMetadata(request, context),
    );
    const name = enrolled.friendlyName === '' ? {} : { friendly_name: enrolled.friendlyName };
    return reply.send({ id, type, ...name, ...enrolled.members });
  });

  const config = { limiter: 'factor' } as const;
  const challenge = { schema: { params, body: challengeBody }, config, preValidation: allowMissingBody };
  api.post('/factors/:factor_id/challenge', challenge, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    const factorId = uuidParameter(request.params, 'factor_id');
    const { id, type, expiresAt, members } = await challengeFactor(
      context,
      { ...caller, factorId, body: request.body },
      requestMetadata(request, context),
    );
    return reply.send({ id, type, expires_at: expiresAt, ...members });
  });

  api.post(
    '/factors/:factor_id/verify',
    { schema: { params, body: verifyBody }, config, bodyLimit: bodyLimits.contact },
    async (request, reply) => {
      const caller = await authenticatePermanentUser(request, context);
      const factorId = uuidParameter(request.params, 'factor_id');
      const { challenge_id: challengeId = '', ...body } = request.body;
      if (!isUuid(challengeId)) throw errors.validation_failed({ message: 'challenge_id must be an UUID' });
      const verified = await verifyFactor(
        context,
        { ...caller, factorId, challengeId, body },
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
