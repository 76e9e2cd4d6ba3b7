import { ProtocolError } from '../protocol-error.ts';
import type { GrantHandler } from '../server-context.ts';

/**
 * A token for the client itself; no refresh token goes with it.
 *
 * @see RFC 6749 §4.4 https://www.rfc-editor.org/rfc/rfc6749#section-4.4
 */
export const clientCredentialsGrant: GrantHandler = (_context, client, params) => {
  if (client.clientSecret === undefined && client.verifyAssertion === undefined) {
    return {
      ok: false,
      error: new ProtocolError('unauthorized_client', 'public clients have no credentials'),
    };
  }
  const { clientId } = client;
  const grant = { clientId, subject: clientId, scope: params.get('scope') ?? '', revoked: false };
  return { ok: true, grant, withRefreshToken: false };
};
