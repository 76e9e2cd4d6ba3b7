import { encodeBase64Url } from '../encoding.ts';
import { type GrantHandler, type GrantOutcome, type PendingCode, ProtocolError } from './settings.ts';

/**
 * Exchanges a code once, with its redirect URI and its PKCE verifier. A second use revokes the
 * tokens of the first.
 * @see RFC 6749 §4.1.3 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.3
 */
const authorizationCodeGrant: GrantHandler = async (context, client, params) => {
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

function refuse(description: string, code = 'invalid_grant'): GrantOutcome {
  return { ok: false, error: new ProtocolError(code, description) };
}

async function verifierMatches({ challenge }: PendingCode, verifier: string | null): Promise<boolean> {
  if (challenge === undefined) return verifier === null;
  if (verifier === null) return false;
  if (challenge.method === 'plain') return challenge.value === verifier;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return challenge.value === encodeBase64Url(new Uint8Array(digest));
}

/**
 * A token for the client itself, without a refresh token.
 * @see RFC 6749 §4.4 https://www.rfc-editor.org/rfc/rfc6749#section-4.4
 */
const clientCredentialsGrant: GrantHandler = (_context, client, params) => {
  if (client.clientSecret === undefined && client.verifyAssertion === undefined) {
    return refuse('public clients have no credentials', 'unauthorized_client');
  }
  const { clientId } = client;
  const grant = { clientId, subject: clientId, scope: params.get('scope') ?? '', revoked: false };
  return { ok: true, grant, withRefreshToken: false };
};

/** A poll of a device. @see RFC 8628 §3.5 https://www.rfc-editor.org/rfc/rfc8628#section-3.5 */
const deviceCodeGrant: GrantHandler = (context, { clientId }, params) => {
  const code = params.get('device_code') ?? '';
  const device = context.devices.get(code);
  if (device === undefined || device.clientId !== clientId) return refuse('unknown device code');
  const now = context.now();
  if (device.expiresAt <= now) return refuse('the device code has expired', 'expired_token');
  const tooSoon = device.lastPolledAt !== undefined && now - device.lastPolledAt < device.intervalSeconds;
  device.lastPolledAt = now;
  if (device.decision === 'denied') return refuse('the user refused', 'access_denied');
  if (device.decision !== 'pending') {
    context.devices.delete(code);
    const grant = { clientId, subject: device.decision.subject, scope: device.scope, revoked: false };
    return { ok: true, grant, withRefreshToken: true };
  }
  if (!tooSoon) return refuse('the user has not decided yet', 'authorization_pending');
  // RFC 8628 §3.5: the client must wait five seconds longer from now on.
  device.intervalSeconds += 5;
  return refuse('polled before the interval was over', 'slow_down');
};

/**
 * A token for the subject of an assertion that the client's `verifyAssertion` accepts.
 *
 * @see RFC 7523 §2.1 https://www.rfc-editor.org/rfc/rfc7523#section-2.1
 */
const jwtBearerGrant: GrantHandler = async (_context, client, params) => {
  const assertion = params.get('assertion') ?? '';
  if (client.verifyAssertion === undefined || !(await client.verifyAssertion(assertion))) {
    return refuse('the assertion was not accepted');
  }
  const { clientId } = client;
  const grant = { clientId, subject: clientId, scope: params.get('scope') ?? '', revoked: false };
  return { ok: true, grant, withRefreshToken: false };
};

/**
 * A token for a user whose password the client knows.
 *
 * @see RFC 6749 §4.3 https://www.rfc-editor.org/rfc/rfc6749#section-4.3
 */
const passwordGrant: GrantHandler = ({ settings }, { clientId }, params) => {
  const user = settings.users.find(({ username }) => username === params.get('username'));
  if (user === undefined || user.password !== params.get('password')) {
    return refuse('wrong user name or password');
  }
  const subject = user.subject ?? user.username;
  return {
    ok: true,
    grant: { clientId, subject, scope: params.get('scope') ?? '', revoked: false },
    withRefreshToken: true,
  };
};

/**
 * A new access token and, with rotation, a new refresh token. Reuse of a spent one revokes the
 * grant.
 * @see RFC 9700 §4.14.2 https://www.rfc-editor.org/rfc/rfc9700#section-4.14.2
 */
const refreshTokenGrant: GrantHandler = ({ settings, ledger }, client, params) => {
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
    return refuse('more than was granted', 'invalid_scope');
  }
  if (!settings.rotateRefreshTokens) return { ok: true, grant: known.grant, withRefreshToken: false };
  known.spent = true;
  return { ok: true, grant: known.grant, withRefreshToken: true };
};

/**
 * A new token for the subject of an access token of this server.
 *
 * @see RFC 8693 §2.1 https://www.rfc-editor.org/rfc/rfc8693#section-2.1
 */
const tokenExchangeGrant: GrantHandler = ({ ledger }, { clientId }, params) => {
  const subjectToken = ledger.findActive(params.get('subject_token') ?? '');
  if (subjectToken?.kind !== 'access_token') {
    return refuse('subject_token is not a valid access token', 'invalid_request');
  }
  const { subject, scope } = subjectToken.grant;
  const grant = { clientId, subject, scope: params.get('scope') ?? scope, revoked: false };
  return { ok: true, grant, withRefreshToken: false };
};

/** The grants of the test server by their `grant_type`. */
export const grants: ReadonlyMap<string, GrantHandler> = new Map([
  ['authorization_code', authorizationCodeGrant],
  ['client_credentials', clientCredentialsGrant],
  ['password', passwordGrant],
  ['refresh_token', refreshTokenGrant],
  ['urn:ietf:params:oauth:grant-type:device_code', deviceCodeGrant],
  ['urn:ietf:params:oauth:grant-type:jwt-bearer', jwtBearerGrant],
  ['urn:ietf:params:oauth:grant-type:token-exchange', tokenExchangeGrant],
]);
