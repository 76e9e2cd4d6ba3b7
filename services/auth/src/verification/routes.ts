import { isAppError } from '@tollgate/kit/errors';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors, oauthErrorNames } from '../errors.ts';
import { type FlowType, pkcePrefix } from '../flows/pkce.ts';
import { type AddRoutes, body, bodyLimits, optionalText } from '../http/api.ts';
import { redirectTarget, redirectUrl } from '../http/redirects.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { fragmentMarker, sendSession, sessionFragment } from '../sessions/response.ts';
import type { VerificationContext } from './context.ts';
import { sendLinkPage } from './link-page.ts';
import { type Verified, verify } from './verify.ts';

const otherAddressMessage =
  'Confirmation link accepted. Please proceed to confirm link sent to the other email';

/**
 * Redirect target of a valid link. PKCE clients read the query, others the fragment, which is not
 * sent to servers.
 */
function verifiedUrl(target: string, verified: Verified, flow: FlowType): string {
  if (verified.kind === 'code') return redirectUrl(target, { query: { code: verified.code } });
  if (verified.kind === 'other-address-to-confirm')
    return withMessage(target, { message: otherAddressMessage }, flow);
  const { session, type } = verified;
  return redirectUrl(target, { session: { ...sessionFragment(session), type } });
}

/** Redirect target of an invalid link. Rethrows failures. */
function refusedUrl(target: string, error: unknown, flow: FlowType): string {
  if (!isAppError(error)) throw error;
  const name = oauthErrorNames[error.httpStatus];
  const parameters = {
    ...(name !== undefined && { error: name }),
    error_code: error.code,
    error_description: error.message,
  };
  return withMessage(target, parameters, flow);
}

function withMessage(target: string, parameters: Readonly<Record<string, string>>, flow: FlowType): string {
  return redirectUrl(target, {
    fragment: { ...fragmentMarker, ...parameters },
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
  /** Set by the form of the confirmation page, which otherwise has the parameters of the link. */
  confirm_link: optionalText,
});
const verifyQuery = Type.Object({ type: optionalText, token: optionalText, redirect_to: optionalText });

/** Parameters of a link. */
interface Link {
  readonly type?: string | undefined;
  readonly token?: string | undefined;
  readonly redirect_to?: string | undefined;
}

/** Spends the token of a link, and redirects with a session, a code or an error. */
async function followLink(
  context: VerificationContext,
  { type, tokenHash, redirectTo }: CheckedLink,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
): Promise<FastifyReply> {
  const flow = tokenHash.startsWith(pkcePrefix) ? 'pkce' : 'implicit';
  const url = await verify(context, { type, tokenHash, by: 'link' }, requestMetadata(request, context)).then(
    (verified) => verifiedUrl(redirectTo, verified, flow),
    (error: unknown) => refusedUrl(redirectTo, error, flow),
  );
  return reply.header('cache-control', 'no-store').redirect(url, 303);
}

interface CheckedLink {
  readonly type: string;
  readonly tokenHash: string;
  /** Result of `redirectTarget`. */
  readonly redirectTo: string;
}

/** @throws AppError `validation_failed` */
function checkLink(context: VerificationContext, request: FastifyRequest, link: Link): CheckedLink {
  const { type = '', token: tokenHash = '' } = link;
  if (type === '') throw errors.validation_failed({ message: 'Verify requires a verification type' });
  if (tokenHash === '')
    throw errors.validation_failed({ message: 'Verify requires a token or a token hash' });
  return { type, tokenHash, redirectTo: redirectTarget(request, link, context) };
}

/** `/verify`: codes and hashes sent by clients, and links followed by users. */
export const addVerifyRoutes: AddRoutes<VerificationContext> = (api, context) => {
  const { mailerLinkPageEnabled: hasPage } = context.settings;
  const post = {
    schema: { body: verifyBody },
    config: { limiter: 'verify' },
    bodyLimit: bodyLimits.contact,
  } as const;
  api.post('/verify', post, async (request, reply) => {
    const { token_hash: tokenHash, redirect_to: redirectTo, confirm_link: confirm, ...rest } = request.body;
    if (hasPage && confirm !== undefined)
      return followLink(context, checkLink(context, request, request.body), { request, reply });
    const presented = { ...rest, tokenHash, redirectTo, by: 'request' } as const;
    const verified = await verify(context, presented, requestMetadata(request, context));
    if (verified.kind === 'session') return sendSession(reply, verified.session, { type: verified.type });
    return reply.send({ msg: otherAddressMessage, code: '200' });
  });

  // No HEAD: a request that only inspects the link must not spend it.
  const get = { schema: { querystring: verifyQuery }, exposeHeadRoute: false } as const;
  if (hasPage)
    // Not limited: it reads nothing, and the limit is for the form.
    api.get('/verify', get, (request, reply) =>
      sendLinkPage(context, checkLink(context, request, request.query), { request, reply }),
    );
  else
    api.get('/verify', { ...get, config: { limiter: 'verify' } }, (request, reply) =>
      followLink(context, checkLink(context, request, request.query), { request, reply }),
    );
};
