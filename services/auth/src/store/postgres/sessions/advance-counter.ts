import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { SessionStore } from '../../../ports/session-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { type Queryable, query } from '../query.ts';

// Of statements that arrive together one finds the counter as it was; the others wait for the session and then do not.
const advance = `
  with refreshed as (
    update sessions set refresh_token_counter = refresh_token_counter + 1,
      refreshed_at = $5, updated_at = $5, user_agent = $3, ip = nullif($4, '')::inet
    where id = $1 and refresh_token_counter = $2
    returning id
  ), audit as (${auditInsert(6, 'refreshed')})
  select 1 from refreshed`;

// The session comes before its tokens, as in all statements on both.
const upgrade = `
  with refreshed as (
    update sessions set refresh_token_hmac_key = $3, refresh_token_counter = 0,
      refreshed_at = $6, updated_at = $6, user_agent = $4, ip = nullif($5, '')::inet
    where id = $2 and refresh_token_hmac_key is null
      and exists (select 1 from refresh_tokens where token = $1 and revoked is not true)
    returning id
  ), revoked as (
    update refresh_tokens set revoked = true, updated_at = $6
    where token = $1 and revoked is not true and exists (select 1 from refreshed)
  ), audit as (${auditInsert(7, 'refreshed')})
  select 1 from refreshed`;

/** The functions of {@link SessionStore} for refresh tokens that are not kept. */
export function advanceCounter(
  sql: Queryable,
  cipher: ColumnCipher,
): Pick<SessionStore, 'advance' | 'upgrade'> {
  return {
    async advance({ sessionId, from, userAgent, ip, at }, audit) {
      const rows = await query(sql, advance, [sessionId, from, userAgent, ip, at, ...auditParameters(audit)]);
      return rows.length > 0;
    },
    async upgrade({ token, sessionId, hmacKey, userAgent, ip, at }, audit) {
      const rows = await query(sql, upgrade, [
        token,
        sessionId,
        cipher.seal(sessionId, hmacKey),
        userAgent,
        ip,
        at,
        ...auditParameters(audit),
      ]);
      return rows.length > 0;
    },
  };
}
