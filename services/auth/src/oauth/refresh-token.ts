import type { AuthorizationDetail } from '../config/oauth-permissions.ts';
import { OAuthError } from '../errors.ts';
import type { IssuedSession } from '../sessions/issue.ts';
import { findPresentedToken, refreshSession } from '../sessions/refresh.ts';
import type { Session } from '../sessions/store.ts';
import { detailsMember, narrowDetails } from './authorization-details.ts';
import type { StoredClient } from './client-store.ts';
import type { GrantContext, TokenRequest, TokenResponse } from './grant.ts';
import { makeIdToken } from './id-token.ts';
import { grantScopes, splitScope } from './scopes.ts';

/**
 * Exchanges a refresh token of the client, with rotation and detection of reuse as for all
 * sessions. The scopes and authorization details are those of the consent or fewer, which the
 * response names. Fewer apply to this access token only.
 *
 * @throws OAuthError `invalid_request`, `invalid_scope`, `invalid_target`,
 * `invalid_authorization_details`; AppError as `refreshSession`
 * @see RFC 6749 §6 https://www.rfc-editor.org/rfc/rfc6749#section-6
 */
export async function grantRefreshToken(
  context: GrantContext,
  client: StoredClient,
  request: TokenRequest,
): Promise<TokenResponse> {
  const { metadata, thumbprint } = request;
  const refreshToken = request.parameter('refresh_token');
  if (refreshToken === '') throw new OAuthError('invalid_request', 'refresh_token is required');
  const presented = { refreshToken, clientId: client.id };
  const access = await readAccess(context, presented, request);
  const session = await refreshSession(context, { ...presented, ...access, thumbprint }, metadata);
  const idToken = await refreshIdToken(context, client, session);
  return {
    access_token: session.accessToken,
    expires_in: session.expiresInSeconds,
    refresh_token: session.refreshToken,
    ...(idToken !== undefined && { id_token: idToken }),
    ...(session.client && { scope: session.client.scope, ...detailsMember(session.client.details) }),
  };
}

/**
 * The scope and details of the request, and the check of its resources. Runs before the refresh: a
 * request that fails must not use up the token.
 *
 * @see RFC 6749 §6, RFC 8707 §2.2, RFC 9396 §6.1
 */
async function readAccess(
  context: GrantContext,
  presented: { readonly refreshToken: string; readonly clientId: string },
  { scope = '', details = '', resources }: TokenRequest,
): Promise<{ readonly scope?: string; readonly details?: readonly AuthorizationDetail[] }> {
  if (scope === '' && details === '' && resources.length === 0) return {};
  const { session } = await findPresentedToken(context, presented);
  checkResources(session, resources);
  const { scope: granted = '', details: grantedDetails = [] } = session.client ?? {};
  return {
    ...(scope !== '' && { scope: grantScopes(scope, splitScope(granted)).join(' ') }),
    details: narrowDetails(details, grantedDetails),
  };
}

function checkResources({ client }: Session, resources: readonly string[]): void {
  if (!resources.every((resource) => resource === client?.resource))
    throw new OAuthError('invalid_target', 'resource is not that of the authorization request');
}

/** @see OpenID Connect Core §12.2 https://openid.net/specs/openid-connect-core-1_0.html#RefreshTokenResponse */
async function refreshIdToken(
  context: GrantContext,
  client: StoredClient,
  { user, sessionId, accessToken, client: granted }: IssuedSession,
): Promise<string | undefined> {
  const scope = granted?.scope ?? '';
  if (!splitScope(scope).includes('openid')) return undefined;
  const authentication = await context.store.authentications.find(sessionId);
  return makeIdToken(context, { user, client, sessionId, accessToken, scope, authentication });
}
