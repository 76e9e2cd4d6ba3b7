import { type AddRoutes, allowMissingBody, body, optionalText } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { authenticatePermanentUser } from '../sessions/authenticate.ts';
import { sendSession } from '../sessions/response.ts';
import type { MfaContext } from './context.ts';
import {
  generateRecoveryCodes,
  getRecoveryCodes,
  redeemRecoveryCode,
  regenerateRecoveryCodes,
  removeRecoveryCodes,
} from './recovery-codes.ts';

const generateBody = body({ friendly_name: optionalText });
const verifyBody = body({ code: optionalText });

/** `/factors/recovery-codes`: single-use codes instead of another second factor. */
export const addRecoveryCodeRoutes: AddRoutes<MfaContext> = (api, context) => {
  const path = '/factors/recovery-codes';
  // Codes are hashed slowly.
  const config = { limiter: 'factor' } as const;

  api.get(path, async (request, reply) => {
    const { user } = await authenticatePermanentUser(request, context);
    const { factorId, total, unused } = await getRecoveryCodes(context, user);
    return reply.send({ id: factorId, type: 'recovery_code', total, remaining: unused.length });
  });

  const generate = { schema: { body: generateBody }, config, preValidation: allowMissingBody };
  api.post(path, generate, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    const { friendly_name: name = '' } = request.body;
    const issued = await generateRecoveryCodes(context, caller, name, requestMetadata(request, context));
    return reply.header('cache-control', 'no-store').send(toIssuedJson(issued));
  });

  api.post(`${path}/regenerate`, { config }, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    const issued = await regenerateRecoveryCodes(context, caller, requestMetadata(request, context));
    return reply.header('cache-control', 'no-store').send(toIssuedJson(issued));
  });

  api.post(`${path}/verify`, { schema: { body: verifyBody }, config }, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    const { code = '' } = request.body;
    const { remaining, ...session } = await redeemRecoveryCode(
      context,
      caller,
      code,
      requestMetadata(request, context),
    );
    return sendSession(reply, session, { recovery_codes_remaining: remaining });
  });

  api.delete(path, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    const { id } = await removeRecoveryCodes(context, caller, requestMetadata(request, context));
    return reply.send({ id });
  });
};

function toIssuedJson({ factorId, friendlyName, codes }: Awaited<ReturnType<typeof generateRecoveryCodes>>) {
  return { id: factorId, type: 'recovery_code', friendly_name: friendlyName, total: codes.length, codes };
}
