import { ProtocolError } from '../protocol-error.ts';
import type { GrantHandler, GrantOutcome } from '../server-context.ts';

/**
 * Gives a new access token and, with rotation on, a new refresh token; the old one is spent then, and its return
 * revokes the whole grant.
 *
 * @see RFC 9700 §4.14.2 https://www.rfc-editor.org/rfc/rfc9700#section-4.14.2
 */
export const refreshTokenGrant: GrantHandler = ({ settings, ledger }, client, params) => {
  const value = params.get('refresh_token') ?? '';
  const known = ledger.find(value);
  if (known?.kind !== 'refresh_token' || known.grant.clientId !== client.clientId) {
    return refuse('unknown refresh token');
  }
  if (known.spent) {
    if (settings.detectReuse) known.grant.revoked = true;
    return refuse('the refresh token was used before');
  }
  if (ledger.findActive(value) === undefined) return refuse('the refresh token has expired or was revoked');
  const scope = params.get('scope') ?? known.grant.scope;
  const granted = known.grant.scope.split(' ');
  if (!scope.split(' ').every((name) => granted.includes(name))) {
    return { ok: false, error: new ProtocolError('invalid_scope', 'more than was granted') };
  }
  if (!settings.rotateRefreshTokens) return { ok: true, grant: known.grant, withRefreshToken: false };
  known.spent = true;
  return { ok: true, grant: known.grant, withRefreshToken: true };
};

function refuse(description: string): GrantOutcome {
  return { ok: false, error: new ProtocolError('invalid_grant', description) };
}
