import { isAppError } from '@tollgate/kit/errors';
import type { FlowType } from '../../domain/pkce.ts';
import { redirectUrl } from '../../domain/redirect-url.ts';
import type { Verified } from '../../use-cases/verify/verify.ts';

/** What the first of two addresses reads that confirm a change of email. */
export const otherAddressMessage =
  'Confirmation link accepted. Please proceed to confirm link sent to the other email';

/** Marks the fragment as ours: a client that finds it knows that the rest is for it. */
const mark = { sb: '' };

/** Where somebody goes who followed a link. A PKCE client reads the query, others the fragment, which no server gets to see. */
export function verifiedUrl(target: string, verified: Verified, flow: FlowType): string {
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
export function refusedUrl(target: string, error: unknown, flow: FlowType): string {
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
