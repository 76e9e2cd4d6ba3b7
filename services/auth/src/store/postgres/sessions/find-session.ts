import type { SessionStore } from '../../../ports/session-store.ts';
import { type Queryable, query, type Row } from '../query.ts';
import { userColumns, userOf } from '../users/user-columns.ts';
import { sessionColumns, sessionOf } from './session-columns.ts';

// A prepared statement keeps a plan made when tables were small, where all indexes look alike. Both statements therefore name no
// column that would let it go through all sessions of a user, or all tokens of a session: no index serves `is not distinct from`.
const withUser = `select ${userColumns}, ${sessionColumns}
  from users u left join sessions s on s.id = $2::uuid and s.user_id is not distinct from u.id
  where u.id = $1 and u.deleted_at is null`;

const byRefreshToken = `select ${userColumns}, ${sessionColumns},
    t.token as token, t.revoked as token_revoked, t.updated_at as token_updated_at,
    case when t.revoked then (
      select (array_agg(c.token order by c.id desc))[1] from refresh_tokens c where c.parent = t.token and c.revoked is not true
    ) end as token_active_child
  from refresh_tokens t join sessions s on s.id = t.session_id join users u on u.id = s.user_id
  where t.token = $1 and u.deleted_at is null`;

interface TokenRow {
  readonly token: string;
  readonly token_revoked: boolean | null;
  readonly token_updated_at: Date;
  readonly token_active_child: string | null;
}

/** The `find…` functions of {@link SessionStore}. */
export function findSession(sql: Queryable): Pick<SessionStore, 'findWithUser' | 'findByRefreshToken'> {
  return {
    async findWithUser(userId, sessionId) {
      const [row] = await query(sql, withUser, [userId, sessionId ?? null]);
      return row && { user: userOf(row), session: sessionOf(row) };
    },
    async findByRefreshToken(token) {
      const [row] = await query(sql, byRefreshToken, [token]);
      const session = row && sessionOf(row);
      return row && session && { token: tokenOf(row), session, user: userOf(row) };
    },
  };
}

function tokenOf(row: Row) {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as TokenRow;
  return {
    token: r.token,
    revoked: r.token_revoked === true,
    updatedAt: r.token_updated_at,
    activeChild: r.token_active_child ?? undefined,
  };
}
