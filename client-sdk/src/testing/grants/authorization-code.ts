import { encodeBase64Url } from '../../jwt/base64url.ts';
import { ProtocolError } from '../protocol-error.ts';
import type { GrantHandler, GrantOutcome, PendingCode } from '../server-context.ts';

/**
 * Redeems a code once, with its redirect URI and its PKCE verifier. A second use revokes what the first one gave.
 *
 * @see RFC 6749 §4.1.3 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.3
 */
export const authorizationCodeGrant: GrantHandler = async (context, client, params) => {
  const code = context.codes.get(params.get('code') ?? '');
  if (code === undefined || code.grant.clientId !== client.clientId) return refuse('unknown code');
  if (code.used) {
    code.grant.revoked = true;
    return refuse('the code was used before');
  }
  code.used = true;
  if (code.expiresAt <= context.now()) return refuse('the code has expired');
  if ((params.get('redirect_uri') ?? null) !== code.redirectUri) return refuse('another redirect_uri');
  if (!(await verifierMatches(code, params.get('code_verifier')))) return refuse('wrong code_verifier');
  return { ok: true, grant: code.grant, withRefreshToken: true };
};

function refuse(description: string): GrantOutcome {
  return { ok: false, error: new ProtocolError('invalid_grant', description) };
}

async function verifierMatches({ challenge }: PendingCode, verifier: string | null): Promise<boolean> {
  if (challenge === undefined) return verifier === null;
  if (verifier === null) return false;
  if (challenge.method === 'plain') return challenge.value === verifier;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return challenge.value === encodeBase64Url(new Uint8Array(digest));
}
