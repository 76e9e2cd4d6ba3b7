import { auditEntry } from '../../domain/audit-entry.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { Services } from '../../services.ts';

/** Ends one session of a user. @throws AppError `session_not_found` (404) when it is none of theirs. */
export type RevokeSession = (user: User, sessionId: string, facts: RequestFacts) => Promise<void>;

/** Creates {@link RevokeSession}. */
export function createRevokeSession({ store }: Pick<Services, 'store'>): RevokeSession {
  return async (user, sessionId, facts) => {
    const found = await store.sessions.findWithUser(user.id, sessionId);
    if (found?.session === undefined)
      throw errors.session_not_found({ httpStatus: 404, message: 'Session not found' });
    await store.sessions.end('local', { userId: user.id, sessionId }, auditEntry(user, 'logout', { facts }));
  };
}
