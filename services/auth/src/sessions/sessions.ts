import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Factor } from '../mfa/factors.ts';
import type { User } from '../users/user.ts';
import type { JsonObject } from '../users/user-json.ts';
import type { LogoutScope } from './store.ts';

/** Number of factors that a session has verified: `aal1` one, `aal2` two. */
export type AssuranceLevel = 'aal1' | 'aal2' | 'aal3';

/** `method` is a value of the claim `amr`. */
interface AuthenticationMethod {
  readonly method: string;
  readonly at: Date;
}

export interface Session {
  readonly id: string;
  readonly userId: string;
  readonly aal: AssuranceLevel;
  readonly factorId: string | undefined;
  readonly createdAt: Date;
  /** Of the last refresh; absent before the first. */
  readonly refreshedAt: Date | undefined;
  readonly notAfter: Date | undefined;
  readonly userAgent: string;
  readonly ip: string;
  /** Kind of session, as named by the client; empty for none. */
  readonly tag: string;
  /** Newest first. */
  readonly methods: readonly AuthenticationMethod[];
}

/** How long sessions last; 0 means no limit. */
export interface SessionLimits {
  readonly sessionTimeboxMs: number;
  readonly sessionInactivityTimeoutMs: number;
}

/** Why a session has expired; undefined if it has not. */
export function sessionExpiry(
  session: Pick<Session, 'createdAt' | 'refreshedAt' | 'notAfter'>,
  limits: SessionLimits,
  nowMs: number,
): 'timebox' | 'inactivity' | undefined {
  const { createdAt, refreshedAt = createdAt, notAfter } = session;
  if (notAfter !== undefined && notAfter.getTime() <= nowMs) return 'timebox';
  if (isElapsed(createdAt, limits.sessionTimeboxMs, nowMs)) return 'timebox';
  return isElapsed(refreshedAt, limits.sessionInactivityTimeoutMs, nowMs) ? 'inactivity' : undefined;
}

/**
 * Whether a session stayed at `aal1` for too long although its user has a second factor. 0 means no
 * limit.
 */
export function isLowAssurance(
  session: Pick<Session, 'aal' | 'createdAt'>,
  user: { readonly factors: readonly Pick<Factor, 'status'>[] },
  { limitMs, nowMs }: { readonly limitMs: number; readonly nowMs: number },
): boolean {
  if (session.aal !== 'aal1' || !user.factors.some(({ status }) => status === 'verified')) return false;
  return isElapsed(session.createdAt, limitMs, nowMs);
}

function isElapsed(since: Date, limitMs: number, nowMs: number): boolean {
  return limitMs > 0 && since.getTime() + limitMs <= nowMs;
}

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
