import { isAppError } from '@tollgate/kit/errors';
import { Type } from 'typebox';
import { errors } from '../errors.ts';
import { type AddRoutes, body, optionalText } from '../http/api.ts';
import { bodyLimits } from '../http/body.ts';
import { redirectTarget, redirectUrl } from '../http/redirects.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { sendSession } from '../sessions/session-json.ts';
import { type FlowType, pkcePrefix } from '../sign-in/pkce.ts';
import { createVerify, type Verified } from './verify.ts';

/** What the first of two addresses reads that confirm a change of email. */
const otherAddressMessage =
  'Confirmation link accepted. Please proceed to confirm link sent to the other email';

/** Marks the fragment as ours: a client that finds it knows that the rest is for it. */
const mark = { sb: '' };

/** Where somebody goes who followed a link. A PKCE client reads the query, others the fragment, which no server gets to see. */
function verifiedUrl(target: string, verified: Verified, flow: FlowType): string {
  if (verified.kind === 'code') return redirectUrl(target, { query: { code: verified.code } });
  if (verified.kind === 'other-address-to-confirm')
    return withMessage(target, { message: otherAddressMessage }, flow);
  const { session, type } = verified;
  return redirectUrl(target, {
    fragment: {
      ...mark,
      access_token: session.accessToken,
      expires_at: String(session.expiresAt),
      expires_in: String(session.expiresInSeconds),
      refresh_token: session.refreshToken,
      token_type: 'bearer',
      type,
    },
  });
}

/** Names of OAuth 2.0 for statuses. @see RFC 6749 §4.1.2.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1 */
const errorNames: Readonly<Record<number, string>> = {
  400: 'invalid_request',
  401: 'unauthorized_client',
  403: 'access_denied',
  500: 'server_error',
  503: 'temporarily_unavailable',
};

/** Where somebody goes whose link is not good. What is no answer but a failure of ours is thrown on. */
function refusedUrl(target: string, error: unknown, flow: FlowType): string {
  if (!isAppError(error)) throw error;
  const name = errorNames[error.httpStatus];
  const parameters = {
    ...(name !== undefined && { error: name }),
    error_code: error.code,
    error_description: error.message,
  };
  return withMessage(target, parameters, flow);
}

function withMessage(target: string, parameters: Readonly<Record<string, string>>, flow: FlowType): string {
  return redirectUrl(target, {
    fragment: { ...mark, ...parameters },
    ...(flow === 'pkce' && { query: parameters }),
  });
}

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
    const verified = await verify(
      { ...rest, tokenHash, redirectTo },
      'request',
      requestMetadata(request, deps),
    );
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
    const url = await verify({ type, tokenHash }, 'link', requestMetadata(request, deps)).then(
      (verified) => verifiedUrl(target, verified, flow),
      (error: unknown) => refusedUrl(target, error, flow),
    );
    return reply.header('cache-control', 'no-store').redirect(url, 303);
  });
};
