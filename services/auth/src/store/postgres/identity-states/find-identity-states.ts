import type { JsonObject } from '../../../domain/json.ts';
import type { IdentityStateStore } from '../../../ports/identity-state-store.ts';
import type { IdentityState } from '../../../ports/identity-states.ts';
import { type Queryable, query, type Row } from '../query.ts';

// The sessions come first, by their own ids: the planner would go through all sessions of the users.
const text = `
  with s as materialized (
    select id, user_id, created_at, not_after from sessions where id = any($2::uuid[])
  )
  select u.id as user_id, u.role, u.raw_app_meta_data, u.is_anonymous, u.banned_until,
    s.id as session_id, s.created_at, s.not_after
  from users u left join s on s.user_id = u.id
  where u.id = any($1::uuid[]) and u.deleted_at is null`;

interface StateRow {
  readonly user_id: string;
  readonly role: string | null;
  readonly raw_app_meta_data: JsonObject | null;
  readonly is_anonymous: boolean;
  readonly banned_until: Date | null;
  readonly session_id: string | null;
  readonly created_at: Date | null;
  readonly not_after: Date | null;
}

/** {@link IdentityStateStore} over PostgreSQL: one statement, however many are asked for. */
export function findIdentityStates(sql: Queryable): IdentityStateStore {
  return {
    async findMany(keys) {
      const userIds = new Set(keys.map(({ userId }) => userId));
      const sessionIds = new Set(keys.flatMap(({ sessionId = [] }) => sessionId));
      const rows = await query(sql, text, [[...userIds], [...sessionIds]]);
      const users = new Map<string, IdentityState>();
      const sessions = new Map<string, IdentityState>();
      for (const row of rows) {
        const { userId, sessionId, state } = stateOf(row);
        users.set(userId, { ...state, session: undefined });
        if (sessionId !== null) sessions.set(keyOf(userId, sessionId), state);
      }
      return keys.map(
        ({ userId, sessionId }) =>
          (sessionId === undefined ? undefined : sessions.get(keyOf(userId, sessionId))) ?? users.get(userId),
      );
    },
  };
}

function keyOf(userId: string, sessionId: string): string {
  return `${userId}/${sessionId}`;
}

function stateOf(row: Row): { userId: string; sessionId: string | null; state: IdentityState } {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as StateRow;
  const session =
    r.session_id === null
      ? undefined
      : { createdAt: r.created_at ?? new Date(0), notAfter: r.not_after ?? undefined };
  return {
    userId: r.user_id,
    sessionId: r.session_id,
    state: {
      role: r.role ?? '',
      appMetadata: r.raw_app_meta_data ?? {},
      isAnonymous: r.is_anonymous,
      bannedUntil: r.banned_until ?? undefined,
      session,
    },
  };
}
