import type { Context } from '../context.ts';
import { type AuditActor, auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { listSessions, type Session } from '../sessions/sessions.ts';

/** Who does it, and of which request. */
interface By {
  readonly actor: AuditActor;
  readonly metadata: RequestMetadata;
}

/** What an administrator does with sessions of others. Each throws AppError `user_not_found`. */
export interface ManageSessions {
  /** Those that last, newest first. */
  list(userId: string, metadata: RequestMetadata): Promise<readonly Session[]>;
  /** Ends one. @throws AppError `session_not_found` (404). */
  end(of: { readonly userId: string; readonly sessionId: string }, by: By): Promise<void>;
  endAll(userId: string, by: By): Promise<void>;
}

/** Creates {@link ManageSessions}. */
export function createManageSessions(deps: Context): ManageSessions {
  const { sessions } = deps.store;

  async function find(userId: string, sessionId?: string) {
    const found = await sessions.findWithUser(userId, sessionId);
    if (found === undefined) throw errors.user_not_found();
    return found;
  }

  function audit(userId: string, { actor, metadata }: By) {
    return auditEntry(actor, 'logout', { metadata, traits: { user_id: userId } });
  }

  return {
    async list(userId, metadata) {
      await find(userId);
      return listSessions(deps, userId, metadata);
    },
    async end({ userId, sessionId }, by) {
      const { session } = await find(userId, sessionId);
      if (session === undefined)
        throw errors.session_not_found({ httpStatus: 404, message: 'Session not found' });
      await sessions.end('local', { userId, sessionId }, audit(userId, by));
    },
    async endAll(userId, by) {
      await find(userId);
      await sessions.end('global', { userId, sessionId: undefined }, audit(userId, by));
    },
  };
}
