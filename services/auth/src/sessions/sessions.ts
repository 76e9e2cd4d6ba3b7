import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { JsonObject, User } from '../users/user.ts';
import { type LogoutScope, type Session, sessionExpiry } from './store.ts';

/** Active sessions of a user, newest first. */
export async function listSessions(
  { store, settings }: Context,
  userId: string,
  { nowMs }: RequestMetadata,
): Promise<Session[]> {
  const sessions = await store.sessions.list(userId);
  return sessions.filter((session) => sessionExpiry(session, settings, nowMs) === undefined);
}

/**
 * Ends a session of a user.
 *
 * @throws AppError `session_not_found` (404) if the user has no such session.
 */
export async function revokeSession(
  { store }: Context,
  { user, sessionId }: { readonly user: User; readonly sessionId: string },
  metadata: RequestMetadata,
): Promise<void> {
  const found = await store.sessions.findWithUser(user.id, sessionId);
  if (found?.session === undefined)
    throw errors.session_not_found({ httpStatus: 404, message: 'Session not found' });
  await store.sessions.end('local', { userId: user.id, sessionId }, auditEntry(user, 'logout', { metadata }));
}

/** Ends sessions of a user: all, the current one, or all others. */
export async function signOut(
  { store }: Context,
  {
    user,
    sessionId,
    scope,
  }: {
    readonly user: User;
    readonly sessionId: string | undefined;
    readonly scope: LogoutScope;
  },
  metadata: RequestMetadata,
): Promise<void> {
  const audit = auditEntry(user, 'logout', { metadata });
  await store.sessions.end(scope, { userId: user.id, sessionId }, audit);
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
