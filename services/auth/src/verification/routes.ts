import { isAppError } from '@tollgate/kit/errors';
import { Type } from 'typebox';
import { errors } from '../errors.ts';
import { type AddRoutes, body, optionalText } from '../http/api.ts';
import { bodyLimits } from '../http/body.ts';
import { redirectTarget, redirectUrl } from '../http/redirects.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { sendSession } from '../sessions/issue.ts';
import { type FlowType, pkcePrefix } from '../sign-in/pkce.ts';
import { type Verified, verify } from './verify.ts';

const otherAddressMessage =
  'Confirmation link accepted. Please proceed to confirm link sent to the other email';

/** Tells clients that the fragment is for them. */
const marker = { sb: '' };

/**
 * Redirect target of a valid link. PKCE clients read the query, others the fragment, which is not
 * sent to servers.
 */
function verifiedUrl(target: string, verified: Verified, flow: FlowType): string {
  if (verified.kind === 'code') return redirectUrl(target, { query: { code: verified.code } });
  if (verified.kind === 'other-address-to-confirm')
    return withMessage(target, { message: otherAddressMessage }, flow);
  const { session, type } = verified;
  return redirectUrl(target, {
    fragment: {
      ...marker,
      access_token: session.accessToken,
      expires_at: String(session.expiresAt),
      expires_in: String(session.expiresInSeconds),
      refresh_token: session.refreshToken,
      token_type: 'bearer',
      type,
    },
  });
}

/**
 * OAuth 2.0 errors by status.
 *
 * @see RFC 6749 §4.1.2.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1
 */
const errorNames: Readonly<Record<number, string>> = {
  400: 'invalid_request',
  401: 'unauthorized_client',
  403: 'access_denied',
  500: 'server_error',
  503: 'temporarily_unavailable',
};

/** Redirect target of an invalid link. Rethrows failures. */
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
    fragment: { ...marker, ...parameters },
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

/** `/verify`: codes and hashes sent by clients, and links followed by users. */
export const addVerifyRoutes: AddRoutes = (api, context) => {
  const post = {
    schema: { body: verifyBody },
    config: { limiter: 'verify' },
    bodyLimit: bodyLimits.contact,
  } as const;
  api.post('/verify', post, async (request, reply) => {
    const { token_hash: tokenHash, redirect_to: redirectTo, ...rest } = request.body;
    const presented = { ...rest, tokenHash, redirectTo, by: 'request' } as const;
    const verified = await verify(context, presented, requestMetadata(request, context));
    if (verified.kind === 'session') return sendSession(reply, verified.session, { type: verified.type });
    return reply.send({ msg: otherAddressMessage, code: '200' });
  });

  // No HEAD: a request that only inspects the link must not spend it.
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
    const target = redirectTarget(request, undefined, context);
    const flow = tokenHash.startsWith(pkcePrefix) ? 'pkce' : 'implicit';
    const url = await verify(
      context,
      { type, tokenHash, by: 'link' },
      requestMetadata(request, context),
    ).then(
      (verified) => verifiedUrl(target, verified, flow),
      (error: unknown) => refusedUrl(target, error, flow),
    );
    return reply.header('cache-control', 'no-store').redirect(url, 303);
  });
};
