import { OAuthError } from '../errors.ts';
import { startClientSession } from './client-session.ts';
import type { StoredClient } from './client-store.ts';
import type { GrantContext, TokenRequest, TokenResponse } from './grant.ts';

const slowDownSeconds = 5;

/**
 * Answers a device that asks whether the user has decided. A second use of a code does not end the
 * session, unlike that of an authorization code: no browser has it, and a device repeats requests
 * whose response was lost.
 *
 * @throws OAuthError `invalid_request`, `invalid_grant`, `authorization_pending`, `slow_down`,
 * `expired_token`, `access_denied`
 * @see RFC 8628 §3.5 https://www.rfc-editor.org/rfc/rfc8628#section-3.5
 */
export async function grantDeviceCode(
  context: GrantContext,
  client: StoredClient,
  request: TokenRequest,
): Promise<TokenResponse> {
  const { store } = context;
  const { parameter, metadata } = request;
  const deviceCode = parameter('device_code');
  if (deviceCode === '') throw new OAuthError('invalid_request', 'device_code is required');
  const at = new Date(metadata.nowMs);
  const found = await store.deviceCodes.poll(deviceCode, { at, slowDownSeconds });
  if (found?.client_id !== client.id) throw invalidGrant('The device_code is invalid');
  if (found.status === 'denied') throw new OAuthError('access_denied', 'User denied the request');
  const isPending = found.status === 'pending';
  const expiresAt = isPending ? found.code_expires_at : found.expires_at;
  if (expiresAt.getTime() <= metadata.nowMs)
    throw new OAuthError('expired_token', 'The device_code has expired: start again');
  if (isPending && found.is_early)
    throw new OAuthError('slow_down', `Wait ${slowDownSeconds} seconds longer between requests`);
  if (isPending) throw new OAuthError('authorization_pending', 'The user has not decided yet');
  const user = found.user_id === null ? undefined : await store.users.findById(found.user_id);
  if (user === undefined) throw invalidGrant('The user of the code does not exist');
  const issued = await startClientSession(context, client, {
    approved: { authorization: found, user, grant: 'device_code' },
    spend: ({ authorizations }) => authorizations.spendApproved(found.id),
    request,
  });
  if (issued === undefined) throw invalidGrant('The code was used before');
  return issued;
}

function invalidGrant(message: string): OAuthError {
  return new OAuthError('invalid_grant', message);
}
