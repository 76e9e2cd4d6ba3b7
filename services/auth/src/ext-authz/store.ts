import { type Queryable, query, type Row } from '../db/query.ts';
import type { JsonObject } from '../users/user-json.ts';
import type { IdentityState } from './identity-cache.ts';

export interface IdentityKey {
  /** A UUID in lower case. */
  readonly userId: string;
  /** A UUID in lower case; absent for a token that names no session. */
  readonly sessionId: string | undefined;
}

/** User ids (UUIDs in lower case), or all users. */
export type ChangedIdentities = readonly string[] | 'all';

// A generic plan that was made when the tables were small would scan them. `offset 0` makes
// PostgreSQL look up each row by its primary key; for the same reason sessions are not joined by user.
const findStates = `
  select u.role, u.raw_app_meta_data, u.is_anonymous, u.banned_until, s.id as session_id, s.created_at, s.not_after
  from unnest($1::uuid[], $2::uuid[]) with ordinality as k(user_id, session_id, position)
  left join lateral (
    select role, raw_app_meta_data, is_anonymous, banned_until from users
    where id = k.user_id and deleted_at is null offset 0
  ) u on true
  left join lateral (
    select id, created_at, not_after from sessions
    where id = k.session_id and user_id is not distinct from k.user_id offset 0
  ) s on true
  order by k.position`;

interface StateRow {
  readonly role: string | null;
  readonly raw_app_meta_data: JsonObject | null;
  /** Null when there is no user: the column itself never is. */
  readonly is_anonymous: boolean | null;
  readonly banned_until: Date | null;
  readonly session_id: string | null;
  readonly created_at: Date | null;
  readonly not_after: Date | null;
}

export class IdentityStateStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** Reads states in the order of the keys with one statement. Undefined: no such user. */
  async findMany(keys: readonly IdentityKey[]): Promise<readonly (IdentityState | undefined)[]> {
    const userIds = keys.map(({ userId }) => userId);
    const sessionIds = keys.map(({ sessionId }) => sessionId ?? null);
    return (await query(this.#sql, findStates, [userIds, sessionIds])).map(toState);
  }
}

function toState(row: Row): IdentityState | undefined {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as StateRow;
  if (r.is_anonymous === null) return undefined;
  return {
    role: r.role ?? '',
    appMetadata: r.raw_app_meta_data ?? {},
    isAnonymous: r.is_anonymous,
    bannedUntil: r.banned_until ?? undefined,
    session:
      r.session_id === null
        ? undefined
        : { createdAt: r.created_at ?? new Date(0), notAfter: r.not_after ?? undefined },
  };
}
