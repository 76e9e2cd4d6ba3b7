import { auditInsert, auditParameters } from '../db/audit-log.ts';
import { nextRefreshTokenId, noInstance, type Queryable, query, type Row } from '../db/query.ts';
import type { ColumnCipher } from '../keys/column-encryption.ts';
import type { RefreshCounter, SessionStore } from './store.ts';

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

/** What is kept of a session whose refresh tokens are not kept, for `… sessions s`; {@link refreshCounterOf} reads it. */
export const refreshCounterColumns = 's.refresh_token_hmac_key, s.refresh_token_counter';

interface RefreshCounterRow {
  readonly refresh_token_hmac_key: string | null;
  /** A bigint, which the library answers as text. */
  readonly refresh_token_counter: string | null;
}

/** Reads {@link refreshCounterColumns}; undefined for a session whose refresh tokens are kept. */
export function refreshCounterOf(
  row: Row,
  { sessionId, cipher }: { readonly sessionId: string; readonly cipher: ColumnCipher },
): RefreshCounter | undefined {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const { refresh_token_hmac_key: kept, refresh_token_counter: counter } =
    row as unknown as RefreshCounterRow;
  return kept === null ? undefined : { hmacKey: cipher.open(sessionId, kept), counter: Number(counter ?? 0) };
}
