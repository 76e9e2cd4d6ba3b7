import type { JsonObject } from '@tollgate/kit/json';
import type { FastifyReply } from 'fastify';
import type { ProviderTokens } from '../identity-providers/provider.ts';
import { toUserJson } from '../users/user.ts';
import type { IssuedSession } from './issue.ts';
import { parseCounterToken } from './refresh-token.ts';

/**
 * Replies with tokens, which must not be cached.
 *
 * @see RFC 6749 §5.1 https://www.rfc-editor.org/rfc/rfc6749#section-5.1
 */
export function sendSession(
  reply: FastifyReply,
  session: IssuedSession,
  more: JsonObject = {},
): FastifyReply {
  return reply
    .header('cache-control', 'no-store')
    .header('pragma', 'no-cache')
    .header('sb-auth-user-id', session.user.id)
    .header('sb-auth-session-id', session.sessionId)
    .headers(refreshTokenHeaders(session))
    .send({
      access_token: session.accessToken,
      token_type: 'bearer',
      expires_in: session.expiresInSeconds,
      expires_at: session.expiresAt,
      refresh_token: session.refreshToken,
      user: toUserJson(session.user),
      ...providerTokenMembers(session.providerTokens),
      ...(session.weakPassword && { weak_password: session.weakPassword }),
      ...more,
    });
}

/** Tells clients that the fragment is for them. */
export const fragmentMarker = { sb: '' };

/** Parameters of a redirect that signs a user in. */
export function sessionFragment(session: IssuedSession): Readonly<Record<string, string>> {
  return {
    ...fragmentMarker,
    access_token: session.accessToken,
    expires_at: String(session.expiresAt),
    expires_in: String(session.expiresInSeconds),
    ...providerTokenMembers(session.providerTokens),
    refresh_token: session.refreshToken,
    token_type: 'bearer',
  };
}

/** Members of a response, or parameters of a redirect. */
function providerTokenMembers(tokens: ProviderTokens | undefined): Readonly<Record<string, string>> {
  if (tokens === undefined) return {};
  const { accessToken, refreshToken } = tokens;
  return {
    provider_token: accessToken,
    ...(refreshToken !== '' && { provider_refresh_token: refreshToken }),
  };
}

/** Help to find out why a user was signed out; they disclose no secret. */
function refreshTokenHeaders({ refreshToken, refresh }: IssuedSession): Record<string, string> {
  const counter = parseCounterToken(refreshToken)?.counter;
  return {
    'sb-auth-refresh-token-prefix': refreshToken.slice(0, 5),
    ...(counter !== undefined && { 'sb-auth-refresh-token-counter': String(counter) }),
    ...(refresh !== undefined && {
      'sb-auth-refresh-token-rotated': String(refresh.rotated),
      'sb-auth-refresh-token-reuse': String(refresh.causes.length > 0),
      ...(refresh.causes.length > 0 && { 'sb-auth-refresh-token-reuse-cause': refresh.causes.join() }),
    }),
  };
}
