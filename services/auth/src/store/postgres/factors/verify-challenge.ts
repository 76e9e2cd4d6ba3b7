import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { FactorStore } from '../../../ports/factor-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { type Queryable, query } from '../query.ts';
import { refreshCounterColumns, refreshCounterOf } from '../sessions/refresh-counter-columns.ts';
import { lockOwner } from '../users/lock-owner.ts';

// Of answers that arrive together one finds code and challenge unspent; the others wait for their rows and then do not. The user comes
// first: each of two sessions would otherwise wait for the factor and the session of the other, which it takes away.
const text = `
  with owner as (${lockOwner('$3')}), verified as (
    update mfa_factors set status = 'verified', last_totp_period = $8,
      updated_at = case status when 'verified' then updated_at else $7 end
    where id = $2 and user_id = (select id from owner) and coalesce(last_totp_period, 0) < $8
      and exists (select 1 from mfa_challenges where id = $1 and factor_id = $2 and verified_at is null)
      and exists (select 1 from sessions where id = $4 and user_id = $3)
    returning id
  ), spent as (
    update mfa_challenges set verified_at = $7
    where id = $1 and factor_id = (select id from verified) and verified_at is null
    returning factor_id
  ), raised as (
    update sessions s set aal = 'aal2', factor_id = $2, updated_at = $7, refresh_token_counter = refresh_token_counter + 2,
      refreshed_at = case when refresh_token_hmac_key is null then refreshed_at else $7::timestamptz at time zone 'utc' end
    where id = $4 and user_id = $3 and exists (select 1 from spent)
    returning id, ${refreshCounterColumns}
  ), proof as (
    insert into mfa_amr_claims (session_id, authentication_method, created_at, updated_at) select id, $5, $7, $7 from raised
    on conflict (session_id, authentication_method) do update set updated_at = excluded.updated_at
  ), revoked as (
    update refresh_tokens set revoked = true, updated_at = $7
    where session_id = (select id from raised) and revoked is not true
    returning id, token
  ), successor as (
    insert into refresh_tokens (token, parent, user_id, session_id, revoked, created_at, updated_at, instance_id)
    select $6, coalesce((select token from revoked order by id desc limit 1), ''), $3::uuid::text, id, false, $7, $7,
      '00000000-0000-0000-0000-000000000000'
    from raised where refresh_token_hmac_key is null
  ), lower_sessions as (
    delete from sessions
    where user_id = $3 and id <> $4 and coalesce(aal, 'aal1') < 'aal2' and exists (select 1 from raised)
  ), unverified as (
    delete from mfa_factors
    where user_id = $3 and id <> $2 and status = 'unverified' and factor_type = 'totp' and exists (select 1 from raised)
  ), audit as (${auditInsert(9, 'raised')})
  select ${refreshCounterColumns} from raised s`;

/** {@link FactorStore.verify} */
export function verifyChallenge(sql: Queryable, cipher: ColumnCipher): FactorStore['verify'] {
  return async (verified, audit) => {
    const rows = await query(sql, text, [
      verified.challengeId,
      verified.factorId,
      verified.userId,
      verified.sessionId,
      verified.method,
      verified.refreshToken,
      verified.at,
      verified.period,
      ...auditParameters(audit),
    ]);
    const [row] = rows;
    return (
      row !== undefined && {
        refreshCounter: refreshCounterOf(row, { sessionId: verified.sessionId, cipher }),
      }
    );
  };
}
