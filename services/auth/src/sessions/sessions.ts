import type { JsonObject } from '@tollgate/kit/json';
import { auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { User } from '../users/user.ts';
import { needsSecondFactor, requireRecentSignIn, requireSecondFactor } from './assurance.ts';
import type { SessionsContext } from './context.ts';
import { sessionExpiry } from './expiry.ts';
import type { LogoutScope, Session, SignOutScope } from './store.ts';

/** Active sessions of a user, newest first. */
export async function listSessions(
  { store, settings }: SessionsContext,
  userId: string,
  { nowMs }: RequestMetadata,
): Promise<Session[]> {
  const sessions = await store.sessions.list(userId);
  return sessions.filter((session) => sessionExpiry(session, settings, nowMs) === undefined);
}

/**
 * Ends a session of the caller, and those of OAuth clients that were approved with it.
 *
 * @throws AppError `session_not_found` (404) if the user has no such session; as `signOutCaller`
 * for other sessions.
 */
export async function revokeSession(
  context: SessionsContext,
  { user, session, sessionId }: Caller & { readonly sessionId: string },
  metadata: RequestMetadata,
): Promise<void> {
  if (sessionId !== session?.id) checkMayEndOthers(context, { user, session });
  const { store } = context;
  const found = await store.sessions.findWithUser(user.id, sessionId);
  if (found?.session === undefined)
    throw errors.session_not_found({ httpStatus: 404, message: 'Session not found' });
  const audit = auditEntry(user, 'logout', { metadata });
  await store.sessions.end('with_clients', { userId: user.id, sessionId }, audit);
}

/** The user who sends a request. */
interface Caller {
  readonly user: User;
  readonly session: Session | undefined;
}

/** auth-js ignores 401, 403 and 404 of a sign-out. */
const otherSessionsError = { message: 'AAL2 required to sign out other sessions', httpStatus: 422 };

function checkMayEndOthers(context: SessionsContext, { user, session }: Caller): void {
  requireSecondFactor(user, session, otherSessionsError);
  requireRecentSignIn(context, { user, session });
}

/**
 * Signs the caller out. Before the second factor, `global` ends only the session of the caller,
 * because apps use it to cancel a sign-in.
 *
 * @throws AppError `insufficient_aal` for the other sessions of a user with a second factor;
 * `reauthentication_needed` for other sessions.
 */
export async function signOutCaller(
  context: SessionsContext,
  { user, session, scope }: Caller & { readonly scope: LogoutScope },
  metadata: RequestMetadata,
): Promise<void> {
  // An OAuth client ends its own session only.
  if (session?.client !== undefined)
    return signOut(context, { user, sessionId: session.id, scope: 'local' }, metadata);
  if (scope === 'others') checkMayEndOthers(context, { user, session });
  const allowed = scope === 'global' && needsSecondFactor(user, session) ? 'local' : scope;
  await signOut(context, { user, sessionId: session?.id, scope: allowed }, metadata);
}

/** Ends sessions of a user: all, the current one, that with its clients, or all others. */
export async function signOut(
  { store }: SessionsContext,
  {
    user,
    sessionId,
    scope,
  }: {
    readonly user: User;
    readonly sessionId: string | undefined;
    readonly scope: SignOutScope;
  },
  metadata: RequestMetadata,
): Promise<void> {
  const audit = auditEntry(user, 'logout', { metadata });
  await store.sessions.end(scope, { userId: user.id, sessionId }, audit);
}

/** The JSON of a session; `currentId` is the session of the caller. Absent values are omitted. */
export function toSessionJson(
  session: Session,
  { jwtExpMs, currentId }: { readonly jwtExpMs: number; readonly currentId?: string | undefined },
): JsonObject {
  const { createdAt, refreshedAt, usedAt, notAfter } = session;
  const tokenExpiresMs = (refreshedAt ?? createdAt).getTime() + jwtExpMs;
  return {
    id: session.id,
    current: session.id === currentId,
    created_at: createdAt.toISOString(),
    ...(refreshedAt && { refreshed_at: refreshedAt.toISOString() }),
    ...(usedAt && { used_at: usedAt.toISOString() }),
    token_expires_at: new Date(tokenExpiresMs).toISOString(),
    ...(notAfter && { not_after: notAfter.toISOString() }),
    aal: session.aal,
    amr: session.methods.map(({ method, at }) => ({ method, timestamp: Math.floor(at.getTime() / 1000) })),
    user_agent: session.userAgent,
    ip: session.ip,
    ...(session.tag !== '' && { tag: session.tag }),
    ...(session.client && { client_id: session.client.id, scope: session.client.scope }),
  };
}
