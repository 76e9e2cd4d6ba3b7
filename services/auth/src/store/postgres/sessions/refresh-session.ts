import type { SessionStore } from '../../../ports/session-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { nextRefreshTokenId, noInstance } from '../gotrue-columns.ts';
import { type Queryable, query } from '../query.ts';

// Of statements that arrive together one finds the token unrevoked; the others wait for the session and then do not. The session comes
// before its tokens, as where it ends: in the other order a refresh and a logout would wait for each other. A token never changes its
// session: asking for it would let the planner go through all tokens of the session.
const rotation = `
  with refreshed as (
    update sessions set refreshed_at = $6, updated_at = $6, user_agent = $4, ip = nullif($5, '')::inet
    where id = $3 and exists (select 1 from refresh_tokens where token = $1 and revoked is not true)
    returning id
  ), revoked as (
    update refresh_tokens set revoked = true, updated_at = $6
    where token = $1 and revoked is not true and exists (select 1 from refreshed)
    returning user_id, session_id
  ), successor as (
    insert into refresh_tokens (id, token, parent, user_id, session_id, revoked, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, $2, $1, user_id, session_id, false, $6, $6, ${noInstance} from revoked
  ), audit as (${auditInsert(7, 'revoked')})
  select 1 from revoked`;

const touch = 'update sessions set refreshed_at = $2, updated_at = $2 where id = $1';

/** The functions of {@link SessionStore} that a refresh calls. */
export function refreshSession(sql: Queryable): Pick<SessionStore, 'rotate' | 'touch'> {
  return {
    async rotate({ token, successor, sessionId, userAgent, ip, at }, audit) {
      const rows = await query(sql, rotation, [
        token,
        successor,
        sessionId,
        userAgent,
        ip,
        at,
        ...auditParameters(audit),
      ]);
      return rows.length > 0;
    },
    async touch(sessionId, at) {
      await query(sql, touch, [sessionId, at]);
    },
  };
}
