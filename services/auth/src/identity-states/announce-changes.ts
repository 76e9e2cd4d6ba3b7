import type { Store } from '../ports/store.ts';

/**
 * A store that announces the users whose role, metadata, ban or sessions it has changed, once the
 * change is committed. The database notifies all replicas as well, but the response to the request
 * may arrive sooner, and not every connection pooler supports notifications.
 */
export function announceChanges(store: Store, onChange: (userIds: readonly string[]) => void): Store {
  return {
    ...announceWrites(store, (userId) => onChange([userId])),
    async transaction(work) {
      const changed = new Set<string>();
      const result = await store.transaction((within) =>
        work(announceWrites(within, (userId) => changed.add(userId))),
      );
      if (changed.size > 0) onChange([...changed]);
      return result;
    },
  };
}

function announceWrites(store: Store, note: (userId: string) => void): Store {
  const { users, sessions, factors } = store;
  const announcing: Store = {
    ...store,
    users: {
      ...users,
      update: (id, ...rest) => after(users.update(id, ...rest), id),
      delete: (id, ...rest) => after(users.delete(id, ...rest), id),
      softDelete: (id, ...rest) => after(users.softDelete(id, ...rest), id),
    },
    sessions: {
      ...sessions,
      end: (scope, ids, audit) => after(sessions.end(scope, ids, audit), ids.userId),
    },
    factors: {
      ...factors,
      verify: (verified, audit) => after(factors.verify(verified, audit), verified.userId),
    },
    // Only within a transaction, of which it is a part.
    transaction: (work) => work(announcing),
  };
  return announcing;

  async function after<T>(write: Promise<T>, userId: string): Promise<T> {
    const result = await write;
    note(userId);
    return result;
  }
}
