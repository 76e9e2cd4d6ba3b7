import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Factor } from '../mfa/factors.ts';
import type { User } from '../users/user.ts';
import type { LogoutScope } from './store.ts';

/** How much a session has proved: `aal1` one factor, `aal2` two. */
export type AssuranceLevel = 'aal1' | 'aal2' | 'aal3';

/** One proof of a session; `method` is a value of the claim `amr`. */
interface AuthenticationMethod {
  readonly method: string;
  readonly at: Date;
}

/** A sign-in that lasts. */
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
  /** What the client called the kind of session: empty for none. */
  readonly tag: string;
  /** Newest first. */
  readonly methods: readonly AuthenticationMethod[];
}

/** How long sessions may last; 0 for ever. */
export interface SessionLimits {
  readonly sessionTimeboxMs: number;
  readonly sessionInactivityTimeoutMs: number;
}

/** Why a session has ended by itself; undefined while it lasts. */
export function sessionEnd(
  session: Pick<Session, 'createdAt' | 'refreshedAt' | 'notAfter'>,
  limits: SessionLimits,
  nowMs: number,
): 'timebox' | 'inactivity' | undefined {
  const { createdAt, refreshedAt = createdAt, notAfter } = session;
  if (notAfter !== undefined && notAfter.getTime() <= nowMs) return 'timebox';
  if (isOver(createdAt, limits.sessionTimeboxMs, nowMs)) return 'timebox';
  return isOver(refreshedAt, limits.sessionInactivityTimeoutMs, nowMs) ? 'inactivity' : undefined;
}

/** Has a session stayed too long below the assurance that its user's factors could give it? 0 for no limit. */
export function isLowAssurance(
  session: Pick<Session, 'aal' | 'createdAt'>,
  user: { readonly factors: readonly Pick<Factor, 'status'>[] },
  { limitMs, nowMs }: { readonly limitMs: number; readonly nowMs: number },
): boolean {
  if (session.aal !== 'aal1' || !user.factors.some(({ status }) => status === 'verified')) return false;
  return isOver(session.createdAt, limitMs, nowMs);
}

function isOver(since: Date, limitMs: number, nowMs: number): boolean {
  return limitMs > 0 && since.getTime() + limitMs <= nowMs;
}

/** The sessions of a user that last, newest first. */
export type ListSessions = (userId: string, metadata: RequestMetadata) => Promise<Session[]>;

/** Creates {@link ListSessions}. */
export function createListSessions({ store, settings }: Context): ListSessions {
  return async (userId, { nowMs }) => {
    const sessions = await store.sessions.list(userId);
    return sessions.filter((session) => sessionEnd(session, settings, nowMs) === undefined);
  };
}

/** Ends one session of a user. @throws AppError `session_not_found` (404) when it is none of theirs. */
export type RevokeSession = (user: User, sessionId: string, metadata: RequestMetadata) => Promise<void>;

/** Creates {@link RevokeSession}. */
export function createRevokeSession({ store }: Context): RevokeSession {
  return async (user, sessionId, metadata) => {
    const found = await store.sessions.findWithUser(user.id, sessionId);
    if (found?.session === undefined)
      throw errors.session_not_found({ httpStatus: 404, message: 'Session not found' });
    await store.sessions.end(
      'local',
      { userId: user.id, sessionId },
      auditEntry(user, 'logout', { metadata }),
    );
  };
}

/** Ends sessions of a user: all, this one, or all but this one. */
export type SignOut = (
  who: { readonly user: User; readonly sessionId: string | undefined; readonly scope: LogoutScope },
  metadata: RequestMetadata,
) => Promise<void>;

/** Creates {@link SignOut}. */
export function createSignOut({ store }: Context): SignOut {
  return ({ user, sessionId, scope }, metadata) =>
    store.sessions.end(scope, { userId: user.id, sessionId }, auditEntry(user, 'logout', { metadata }));
}
