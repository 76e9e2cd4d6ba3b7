import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { RefreshableSession, SessionStore, StoredRefreshToken } from '../../../ports/session-store.ts';
import { type Queryable, query, type Row } from '../query.ts';
import { userColumns, userOf } from '../users/user-columns.ts';
import { refreshCounterColumns, refreshCounterOf } from './refresh-counter-columns.ts';
import { sessionColumns, sessionOf } from './session-columns.ts';

// A prepared statement keeps a plan made when tables were small, where all indexes look alike. These statements therefore name no
// column that would let it go through all sessions of a user, or all tokens of a session: no index serves `is not distinct from`.
const withUser = `select ${userColumns}, ${sessionColumns}
  from users u left join sessions s on s.id = $2::uuid and s.user_id is not distinct from u.id
  where u.id = $1 and u.deleted_at is null`;

const byRefreshToken = `select ${userColumns}, ${sessionColumns}, ${refreshCounterColumns},
    t.revoked as token_revoked, t.updated_at as token_updated_at,
    case when t.revoked then (
      select (array_agg(c.token order by c.id desc))[1] from refresh_tokens c where c.parent = t.token and c.revoked is not true
    ) end as token_active_child,
    t.revoked and exists (select 1 from refresh_tokens c where c.parent = t.token) as token_has_child
  from refresh_tokens t join sessions s on s.id = t.session_id join users u on u.id = s.user_id
  where t.token = $1 and u.deleted_at is null`;

const forRefresh = `select ${userColumns}, ${sessionColumns}, ${refreshCounterColumns}
  from sessions s join users u on u.id = s.user_id
  where s.id = $1 and u.deleted_at is null`;

interface TokenRow {
  readonly token_revoked: boolean | null;
  readonly token_updated_at: Date;
  readonly token_active_child: string | null;
  readonly token_has_child: boolean | null;
}

/** The `find…` functions of {@link SessionStore}. */
export function findSession(
  sql: Queryable,
  cipher: ColumnCipher,
): Pick<SessionStore, 'findWithUser' | 'findByRefreshToken' | 'findForRefresh'> {
  return {
    async findWithUser(userId, sessionId) {
      const [row] = await query(sql, withUser, [userId, sessionId ?? null]);
      return row && { user: userOf(row), session: sessionOf(row) };
    },
    async findByRefreshToken(token) {
      const [row] = await query(sql, byRefreshToken, [token]);
      const found = row && refreshableOf(row, cipher);
      return row && found && { ...found, token: tokenOf(row) };
    },
    async findForRefresh(sessionId) {
      const [row] = await query(sql, forRefresh, [sessionId]);
      return row && refreshableOf(row, cipher);
    },
  };
}

function refreshableOf(row: Row, cipher: ColumnCipher): RefreshableSession | undefined {
  const session = sessionOf(row);
  if (session === undefined) return undefined;
  const refreshCounter = refreshCounterOf(row, { sessionId: session.id, cipher });
  return { session, user: userOf(row), refreshCounter };
}

function tokenOf(row: Row): StoredRefreshToken {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as TokenRow;
  return {
    revoked: r.token_revoked === true,
    updatedAt: r.token_updated_at,
    activeChild: r.token_active_child ?? undefined,
    hasChild: r.token_has_child === true,
  };
}
