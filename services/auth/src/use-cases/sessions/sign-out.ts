import { auditEntry } from '../../domain/audit-entry.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import type { LogoutScope } from '../../ports/session-store.ts';
import type { Services } from '../../services.ts';

/** Ends sessions of a user: all, this one, or all but this one. */
export type SignOut = (
  who: { readonly user: User; readonly sessionId: string | undefined; readonly scope: LogoutScope },
  facts: RequestFacts,
) => Promise<void>;

/** Creates {@link SignOut}. */
export function createSignOut({ store }: Pick<Services, 'store'>): SignOut {
  return ({ user, sessionId, scope }, facts) =>
    store.sessions.end(scope, { userId: user.id, sessionId }, auditEntry(user, 'logout', { facts }));
}
