import type { Session } from './store.ts';

/** How long sessions last; 0 means no limit. */
export interface SessionLimits {
  readonly sessionTimeboxMs: number;
  readonly sessionInactivityTimeoutMs: number;
}

/** Why a session has expired; undefined if it has not. */
export function sessionExpiry(
  session: Pick<Session, 'createdAt' | 'refreshedAt' | 'usedAt' | 'notAfter'>,
  limits: SessionLimits,
  nowMs: number,
): 'timebox' | 'inactivity' | undefined {
  const { createdAt, refreshedAt = createdAt, usedAt = createdAt, notAfter } = session;
  if (notAfter !== undefined && notAfter.getTime() <= nowMs) return 'timebox';
  if (isElapsed(createdAt, limits.sessionTimeboxMs, nowMs)) return 'timebox';
  const activeAt = refreshedAt > usedAt ? refreshedAt : usedAt;
  return isElapsed(activeAt, limits.sessionInactivityTimeoutMs, nowMs) ? 'inactivity' : undefined;
}

/** Whether a period has passed; 0 means that it never does. */
export function isElapsed(since: Date, limitMs: number, nowMs: number): boolean {
  return limitMs > 0 && since.getTime() + limitMs <= nowMs;
}
