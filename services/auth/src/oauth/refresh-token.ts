import { OAuthError } from '../errors.ts';
import { findPresentedToken, type RefreshRequest, refreshSession } from '../sessions/refresh.ts';
import type { StoredClient } from './client-store.ts';
import type { GrantContext, TokenRequest, TokenResponse } from './grant.ts';

/**
 * Exchanges a refresh token of the client, with rotation and detection of reuse as for all
 * sessions. The scopes are those of the consent, which the response names.
 *
 * @throws OAuthError `invalid_request`, `invalid_target`; AppError as `refreshSession`
 * @see RFC 6749 §6 https://www.rfc-editor.org/rfc/rfc6749#section-6
 */
export async function grantRefreshToken(
  context: GrantContext,
  client: StoredClient,
  { refreshToken = '', resources, metadata }: TokenRequest,
): Promise<TokenResponse> {
  if (refreshToken === '') throw new OAuthError('invalid_request', 'refresh_token is required');
  const presented = { refreshToken, clientId: client.id };
  if (resources.length > 0) await checkResources(context, presented, resources);
  const session = await refreshSession(context, presented, metadata);
  return {
    access_token: session.accessToken,
    token_type: 'Bearer',
    expires_in: session.expiresInSeconds,
    refresh_token: session.refreshToken,
    ...(session.client && { scope: session.client.scope }),
  };
}

/** Before the refresh: a request that fails must not use up the token. @see RFC 8707 §2.2 */
async function checkResources(
  context: GrantContext,
  presented: RefreshRequest,
  resources: readonly string[],
): Promise<void> {
  const { session } = await findPresentedToken(context, presented);
  if (!resources.every((resource) => resource === session.client?.resource))
    throw new OAuthError('invalid_target', 'resource is not that of the authorization request');
}
