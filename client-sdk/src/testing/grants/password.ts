import { ProtocolError } from '../protocol-error.ts';
import type { GrantHandler } from '../server-context.ts';

/**
 * A token for a user whose password the client knows.
 *
 * @see RFC 6749 §4.3 https://www.rfc-editor.org/rfc/rfc6749#section-4.3
 */
export const passwordGrant: GrantHandler = ({ settings }, { clientId }, params) => {
  const user = settings.users.find(({ username }) => username === params.get('username'));
  if (user === undefined || user.password !== params.get('password')) {
    return { ok: false, error: new ProtocolError('invalid_grant', 'wrong user name or password') };
  }
  const subject = user.subject ?? user.username;
  return {
    ok: true,
    grant: { clientId, subject, scope: params.get('scope') ?? '', revoked: false },
    withRefreshToken: true,
  };
};
