import { maxListedSessions, type SessionStore } from '../../../ports/session-store.ts';
import { type Queryable, query } from '../query.ts';
import { sessionColumns, sessionOf } from './session-columns.ts';

const list = `select ${sessionColumns} from sessions s where s.user_id = $1
  order by s.created_at desc, s.id limit ${maxListedSessions}`;

function group(session: string): string {
  return `case when ${session}.tag = any($2::text[]) then ${session}.tag else coalesce(($2::text[])[1], '') end`;
}

// Ids decide between sessions of one moment: one of them has to go.
const hasNewer = `select 1 from sessions mine join sessions other on other.user_id = mine.user_id
  where mine.id = $1 and (other.created_at, other.id) > (mine.created_at, mine.id)
    and ${group('other')} = ${group('mine')}
  limit 1`;

/** The functions of {@link SessionStore} that look at several sessions of a user. */
export function listSessions(sql: Queryable): Pick<SessionStore, 'list' | 'hasNewer'> {
  return {
    async list(userId) {
      const rows = await query(sql, list, [userId]);
      return rows.flatMap((row) => sessionOf(row) ?? []);
    },
    async hasNewer(sessionId, tags) {
      return (await query(sql, hasNewer, [sessionId, tags])).length > 0;
    },
  };
}
