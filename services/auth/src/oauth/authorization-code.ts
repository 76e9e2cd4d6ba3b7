import { auditEntry } from '../audit/audit-log.ts';
import { OAuthError } from '../errors.ts';
import { matchesChallenge } from '../flows/pkce.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { User } from '../users/user.ts';
import type { Authorization } from './authorization-store.ts';
import { startClientSession } from './client-session.ts';
import type { StoredClient } from './client-store.ts';
import type { GrantContext, TokenRequest, TokenResponse } from './grant.ts';

export const codeParameters = ['code', 'redirect_uri', 'code_verifier'] as const;

/**
 * Exchanges a code for a session of the client. Of concurrent requests one succeeds; a second use
 * ends the session, because one of both had a stolen code. A wrong verifier does not: a code in a
 * log must not be enough to sign the user out.
 *
 * @throws OAuthError `invalid_request`, `invalid_grant`, `invalid_target`, `access_denied`
 * @see RFC 6749 §4.1.3, RFC 7636 §4.6, RFC 9700 §2.1.1
 */
export async function grantAuthorizationCode(
  context: GrantContext,
  client: StoredClient,
  request: TokenRequest,
): Promise<TokenResponse> {
  const { store } = context;
  const { metadata } = request;
  const code = request.parameter('code');
  if (code === '') throw new OAuthError('invalid_request', 'code is required');
  const found = await store.authorizations.findByCode(code);
  if (found === undefined || found.client_id !== client.id || found.user_id === null)
    throw invalidGrant('The code is invalid');
  checkVerifier(found, request);
  checkKey(found, request);
  const user = await store.users.findById(found.user_id);
  if (user === undefined) throw invalidGrant('The user of the code does not exist');
  if (found.isSpent) throw await endReused(context, { user, authorization: found }, metadata);
  checkRequest(found, request);
  const issued = await startClientSession(context, client, {
    approved: { authorization: found, user, grant: 'authorization_code' },
    spend: ({ authorizations }) => authorizations.spend(found.id, code),
    request,
  });
  if (issued === undefined) throw await endReused(context, { user, authorization: found }, metadata);
  return issued;
}

/**
 * A verifier for a request without a challenge is refused, too: an attacker may have removed the
 * challenge.
 *
 * @see RFC 7636 §4.6, RFC 9700 §4.8.2
 */
function checkVerifier(
  { code_challenge: challenge, code_challenge_method: challengeMethod }: Authorization,
  { parameter }: TokenRequest,
): void {
  const codeVerifier = parameter('code_verifier');
  const isKnown = challenge !== null && challengeMethod !== null;
  if (!isKnown && codeVerifier === '') return;
  if (codeVerifier === '') throw new OAuthError('invalid_request', 'code_verifier is required');
  if (!isKnown || !matchesChallenge(codeVerifier, { challenge, method: challengeMethod }))
    throw invalidGrant('code_verifier does not match the code_challenge');
}

/** @see RFC 9449 §10 https://www.rfc-editor.org/rfc/rfc9449#section-10 */
function checkKey({ dpop_jkt: bound }: Authorization, { thumbprint }: TokenRequest): void {
  if (bound !== null && bound !== thumbprint)
    throw invalidGrant('The code is bound to a key, of which the request has no DPoP proof');
}

function checkRequest(authorization: Authorization, { parameter, resources, metadata }: TokenRequest): void {
  const redirectUri = parameter('redirect_uri');
  if (authorization.expires_at.getTime() <= metadata.nowMs) throw invalidGrant('The code has expired');
  // RFC 6749 §4.1.3; OAuth 2.1 needs it only without PKCE.
  if (redirectUri === '' && authorization.code_challenge === null)
    throw new OAuthError('invalid_request', 'redirect_uri is required without PKCE');
  if (redirectUri !== '' && redirectUri !== authorization.redirect_uri)
    throw invalidGrant('redirect_uri is not that of the authorization request');
  if (!resources.every((resource) => resource === authorization.resource))
    throw new OAuthError('invalid_target', 'resource is not that of the authorization request');
}

/** Ends the session of a code that was used again, and returns the error. */
async function endReused(
  { store }: GrantContext,
  { user, authorization }: { readonly user: User; readonly authorization: Authorization },
  metadata: RequestMetadata,
): Promise<OAuthError> {
  const sessionId = authorization.id;
  const found = await store.sessions.findWithUser(user.id, sessionId);
  if (found?.session !== undefined) {
    const traits = { reason: 'code_reuse', client_id: authorization.client_id };
    const audit = auditEntry(user, 'token_revoked', { metadata, traits });
    await store.sessions.end('local', { userId: user.id, sessionId }, audit);
  }
  return invalidGrant('The code was used before');
}

function invalidGrant(message: string): OAuthError {
  return new OAuthError('invalid_grant', message);
}
