import type { FastifyReply } from 'fastify';
import { type JsonObject, toUserJson } from '../users/user-json.ts';
import type { IssuedSession } from './issue.ts';
import { parseCounterToken } from './refresh-token.ts';
import type { Session } from './sessions.ts';

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
      ...(session.weakPassword && { weak_password: session.weakPassword }),
      ...more,
    });
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

/** The JSON of a session; `currentId` is the session of the caller. Absent values are omitted. */
export function toSessionJson(session: Session, currentId?: string): JsonObject {
  const { refreshedAt, notAfter } = session;
  return {
    id: session.id,
    current: session.id === currentId,
    created_at: session.createdAt.toISOString(),
    ...(refreshedAt && { refreshed_at: refreshedAt.toISOString() }),
    ...(notAfter && { not_after: notAfter.toISOString() }),
    aal: session.aal,
    amr: session.methods.map(({ method, at }) => ({ method, timestamp: Math.floor(at.getTime() / 1000) })),
    user_agent: session.userAgent,
    ip: session.ip,
    ...(session.tag !== '' && { tag: session.tag }),
  };
}
