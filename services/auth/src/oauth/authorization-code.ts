import { auditEntry } from '../audit/audit-log.ts';
import { OAuthError } from '../errors.ts';
import { matchesChallenge } from '../flows/pkce.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type IssuedSession, prepareSession, storeSession } from '../sessions/issue.ts';
import { recordFailedSignIn } from '../users/failed-sign-in.ts';
import { isBanned, type User } from '../users/user.ts';
import type { Authentication, Authorization } from './authorization-store.ts';
import type { StoredClient } from './client-store.ts';
import { clientIdentifier } from './find-client.ts';
import type { GrantContext, TokenRequest, TokenResponse } from './grant.ts';
import { makeIdToken } from './id-token.ts';
import { splitScope } from './scopes.ts';

/** Value of the claim `amr`, as in GoTrue. */
const method = 'oauth_provider/authorization_code';

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
  const { code = '', metadata } = request;
  if (code === '') throw new OAuthError('invalid_request', 'code is required');
  const found = await store.authorizations.findByCode(code);
  if (found === undefined || found.client_id !== client.id || found.user_id === null)
    throw invalidGrant('The code is invalid');
  checkVerifier(found, request);
  const user = await store.users.findById(found.user_id);
  if (user === undefined) throw invalidGrant('The user of the code does not exist');
  if (found.isSpent) throw await endReused(context, { user, authorization: found }, metadata);
  checkRequest(found, request);
  if (isBanned(user, metadata.nowMs)) {
    recordFailedSignIn(context, user, { method, reason: 'user_banned' }, metadata);
    throw new OAuthError('access_denied', 'User is banned');
  }
  const { id: sessionId, scope, resource } = found;
  const traits = { provider_type: 'oauth_provider_authorization_code', client_id: client.id };
  const signIn = {
    user,
    method,
    traits,
    sessionId,
    client: { id: client.id, identifier: clientIdentifier(client), scope, resource },
  };
  const prepared = await prepareSession(context, signIn, metadata);
  // In one transaction: a failure does not spend the code.
  const session = await store.transaction<IssuedSession | undefined>(async (within) => {
    if (!(await within.authorizations.spend(found.id, code))) return undefined;
    const stored = await storeSession({ ...context, store: within }, prepared, metadata);
    if (splitScope(scope).includes('openid')) await within.authorizations.keepAuthentication(found.id);
    return stored;
  });
  if (session === undefined) throw await endReused(context, { user, authorization: found }, metadata);
  const { accessToken } = session;
  const authentication = findAuthentication(found);
  const idToken = makeIdToken(context, {
    ...{ user, client, sessionId, accessToken, scope, authentication },
    nonce: found.nonce,
  });
  return {
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: session.expiresInSeconds,
    ...(client.grant_types.includes('refresh_token') && { refresh_token: session.refreshToken }),
    ...(idToken !== undefined && { id_token: idToken }),
    scope,
  };
}

/** Undefined for a request that a token without a session approved, or GoTrue. */
function findAuthentication({ authenticated_at, aal, methods }: Authorization): Authentication | undefined {
  if (authenticated_at === null || aal === null || methods === null) return undefined;
  return { authenticated_at, aal, methods };
}

/**
 * A verifier for a request without a challenge is refused, too: an attacker may have removed the
 * challenge.
 *
 * @see RFC 7636 §4.6, RFC 9700 §4.8.2
 */
function checkVerifier(
  { code_challenge: challenge, code_challenge_method: challengeMethod }: Authorization,
  { codeVerifier = '' }: TokenRequest,
): void {
  const isKnown = challenge !== null && challengeMethod !== null;
  if (!isKnown && codeVerifier === '') return;
  if (codeVerifier === '') throw new OAuthError('invalid_request', 'code_verifier is required');
  if (!isKnown || !matchesChallenge(codeVerifier, { challenge, method: challengeMethod }))
    throw invalidGrant('code_verifier does not match the code_challenge');
}

function checkRequest(
  authorization: Authorization,
  { redirectUri, resources, metadata }: TokenRequest,
): void {
  if (authorization.expires_at.getTime() <= metadata.nowMs) throw invalidGrant('The code has expired');
  // RFC 6749 §4.1.3; OAuth 2.1 needs it only without PKCE.
  if (redirectUri === undefined && authorization.code_challenge === null)
    throw new OAuthError('invalid_request', 'redirect_uri is required without PKCE');
  if (redirectUri !== undefined && redirectUri !== authorization.redirect_uri)
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
