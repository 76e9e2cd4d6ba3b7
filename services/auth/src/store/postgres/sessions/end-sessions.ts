import type { LogoutScope, SessionStore } from '../../../ports/session-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { type Queryable, query } from '../query.ts';
import { lockOwner } from '../users/lock-owner.ts';

// Refresh tokens and proofs go with their session.
const whichOf: Readonly<Record<LogoutScope, string>> = {
  global: '$2::uuid is null or true',
  local: 'id = $2',
  others: 'id is distinct from $2',
};

function textOf(which: string): string {
  return `with owner as (${lockOwner('$1')}), ended as (
      delete from sessions where user_id = (select id from owner) and (${which})
    ) ${auditInsert(3)}`;
}

const texts: Readonly<Record<LogoutScope, string>> = {
  global: textOf(whichOf.global),
  local: textOf(whichOf.local),
  others: textOf(whichOf.others),
};

/** {@link SessionStore.end} */
export function endSessions(sql: Queryable): SessionStore['end'] {
  return async (scope, { userId, sessionId }, audit) => {
    await query(sql, texts[scope], [userId, sessionId ?? null, ...auditParameters(audit)]);
  };
}
