import { ProtocolError } from '../protocol-error.ts';
import type { GrantHandler } from '../server-context.ts';

/**
 * A new token for the subject of an access token of this server.
 *
 * @see RFC 8693 §2.1 https://www.rfc-editor.org/rfc/rfc8693#section-2.1
 */
export const tokenExchangeGrant: GrantHandler = ({ ledger }, { clientId }, params) => {
  const subjectToken = ledger.findActive(params.get('subject_token') ?? '');
  if (subjectToken?.kind !== 'access_token') {
    return {
      ok: false,
      error: new ProtocolError('invalid_request', 'subject_token is not a valid access token'),
    };
  }
  const { subject, scope } = subjectToken.grant;
  const grant = { clientId, subject, scope: params.get('scope') ?? scope, revoked: false };
  return { ok: true, grant, withRefreshToken: false };
};
