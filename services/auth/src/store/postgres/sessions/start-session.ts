import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { SessionStore } from '../../../ports/session-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { nextRefreshTokenId, noInstance } from '../gotrue-columns.ts';
import { type Queryable, query } from '../query.ts';

const text = `
  with new_session as (
    insert into sessions (id, user_id, aal, user_agent, ip, created_at, updated_at, tag, refresh_token_hmac_key, refresh_token_counter)
    values ($1, $2, $3::aal_level, $5, nullif($6, '')::inet, $8, $8, nullif($9, ''), $10::text, case when $10 is not null then 0 end)
  ), new_method as (
    insert into mfa_amr_claims (id, session_id, authentication_method, created_at, updated_at)
    values (gen_random_uuid(), $1, $4, $8, $8)
  ), new_token as (
    insert into refresh_tokens (id, token, user_id, session_id, revoked, parent, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, $7, $2::uuid::text, $1, false, '', $8, $8, ${noInstance} where $10 is null
  ), signed_in as (
    update users set last_sign_in_at = $8, updated_at = $8 where id = $2
  )
  ${auditInsert(11)}`;

/** {@link SessionStore.start} */
export function startSession(sql: Queryable, cipher: ColumnCipher): SessionStore['start'] {
  return async (session, audit) => {
    await query(sql, text, [
      session.id,
      session.userId,
      session.aal,
      session.method,
      session.userAgent,
      session.ip,
      session.refreshToken,
      session.at,
      session.tag,
      session.hmacKey === undefined ? null : cipher.seal(session.id, session.hmacKey),
      ...auditParameters(audit),
    ]);
  };
}
