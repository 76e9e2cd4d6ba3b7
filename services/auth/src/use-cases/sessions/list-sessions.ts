import type { RequestFacts } from '../../domain/request-facts.ts';
import { type Session, sessionEnd } from '../../domain/session.ts';
import type { DepsWith } from '../../services.ts';

/** The sessions of a user that last, newest first. */
export type ListSessions = (userId: string, facts: RequestFacts) => Promise<Session[]>;

/** What that takes. */
export type ListSessionsDeps = DepsWith<'store', 'sessionTimeboxMs' | 'sessionInactivityTimeoutMs'>;

/** Creates {@link ListSessions}. */
export function createListSessions({ store, settings }: ListSessionsDeps): ListSessions {
  return async (userId, { nowMs }) => {
    const sessions = await store.sessions.list(userId);
    return sessions.filter((session) => sessionEnd(session, settings, nowMs) === undefined);
  };
}
