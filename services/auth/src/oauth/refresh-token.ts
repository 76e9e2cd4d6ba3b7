import { OAuthError } from '../errors.ts';
import { refreshSession } from '../sessions/refresh.ts';
import type { StoredClient } from './client-store.ts';
import type { GrantContext, TokenRequest, TokenResponse } from './grant.ts';

/**
 * Exchanges a refresh token of the client, with rotation and detection of reuse as for all
 * sessions. The scopes are those of the consent, which the response names.
 *
 * @throws OAuthError `invalid_request`; AppError as `refreshSession`
 * @see RFC 6749 §6 https://www.rfc-editor.org/rfc/rfc6749#section-6
 */
export async function grantRefreshToken(
  context: GrantContext,
  client: StoredClient,
  { refreshToken = '', metadata }: TokenRequest,
): Promise<TokenResponse> {
  if (refreshToken === '') throw new OAuthError('invalid_request', 'refresh_token is required');
  const session = await refreshSession(context, { refreshToken, clientId: client.id }, metadata);
  return {
    access_token: session.accessToken,
    token_type: 'Bearer',
    expires_in: session.expiresInSeconds,
    refresh_token: session.refreshToken,
    ...(session.client && { scope: session.client.scope }),
  };
}
