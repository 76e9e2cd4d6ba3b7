import { Type } from 'typebox';
import { pkcePrefix } from '../../../domain/pkce.ts';
import { errors } from '../../../errors.ts';
import { createVerify } from '../../../use-cases/verify/verify.ts';
import type { AddRoutes } from '../api.ts';
import { bodyLimits } from '../body-limits.ts';
import { redirectTarget } from '../redirect-target.ts';
import { requestFacts } from '../request-facts.ts';
import { body, optionalText } from '../schemas.ts';
import { sendSession } from '../session-reply.ts';
import { otherAddressMessage, refusedUrl, verifiedUrl } from '../verify-redirect.ts';

const verifyBody = body({
  type: optionalText,
  token: optionalText,
  token_hash: optionalText,
  email: optionalText,
  phone: optionalText,
  password: optionalText,
  redirect_to: optionalText,
});
const verifyQuery = Type.Object({ type: optionalText, token: optionalText, redirect_to: optionalText });

/** `/verify`: codes and hashes that clients send, and links that people follow. */
export const addVerifyRoutes: AddRoutes = (api, deps) => {
  const verify = createVerify(deps);

  const post = {
    schema: { body: verifyBody },
    config: { limiter: 'verify' },
    bodyLimit: bodyLimits.contact,
  } as const;
  api.post('/verify', post, async (request, reply) => {
    const { token_hash: tokenHash, redirect_to: redirectTo, ...rest } = request.body;
    const verified = await verify({ ...rest, tokenHash, redirectTo }, 'request', requestFacts(request, deps));
    if (verified.kind === 'session') return sendSession(reply, verified.session, { type: verified.type });
    return reply.send({ msg: otherAddressMessage, code: '200' });
  });

  // Not for HEAD: what only looks at a link must not spend it.
  const get = {
    schema: { querystring: verifyQuery },
    config: { limiter: 'verify' },
    exposeHeadRoute: false,
  } as const;
  api.get('/verify', get, async (request, reply) => {
    const { type = '', token: tokenHash = '' } = request.query;
    if (type === '') throw errors.validation_failed({ message: 'Verify requires a verification type' });
    if (tokenHash === '')
      throw errors.validation_failed({ message: 'Verify requires a token or a token hash' });
    const target = redirectTarget(request, undefined, deps);
    const flow = tokenHash.startsWith(pkcePrefix) ? 'pkce' : 'implicit';
    const url = await verify({ type, tokenHash }, 'link', requestFacts(request, deps)).then(
      (verified) => verifiedUrl(target, verified, flow),
      (error: unknown) => refusedUrl(target, error, flow),
    );
    return reply.header('cache-control', 'no-store').redirect(url, 303);
  });
};
