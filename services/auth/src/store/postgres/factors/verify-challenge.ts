import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { FactorStore } from '../../../ports/factor-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { nextRefreshTokenId, noInstance } from '../gotrue-columns.ts';
import { type Queryable, query } from '../query.ts';
import { refreshCounterColumns, refreshCounterOf } from '../sessions/refresh-counter-columns.ts';
import { lockOwner } from '../users/lock-owner.ts';

// Of answers that arrive together one finds code and challenge unspent; the others wait for their rows and then do not. The user comes
// first: each of two sessions would otherwise wait for the factor and the session of the other, which it takes away.
// Locking the factor finds out whether it has been deleted in the meantime.
const text = `
  with owner as (${lockOwner('$3')}), factor as (
    select id from mfa_factors where id = $2 and user_id = (select id from owner) for no key update
  ), fresh as (
    insert into tollgate_totp_periods as p (factor_id, period)
    select id, $8 from factor
    where exists (select 1 from mfa_challenges where id = $1 and factor_id = $2 and verified_at is null)
      and exists (select 1 from sessions where id = $4 and user_id = $3)
    on conflict (factor_id) do update set period = excluded.period where p.period < excluded.period
    returning factor_id
  ), verified as (
    update mfa_factors
    set status = 'verified', updated_at = case status when 'verified' then updated_at else $7 end
    where id = (select factor_id from fresh)
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
    insert into mfa_amr_claims (id, session_id, authentication_method, created_at, updated_at)
    select gen_random_uuid(), id, $5, $7, $7 from raised
    on conflict (session_id, authentication_method) do update set updated_at = excluded.updated_at
  ), revoked as (
    update refresh_tokens set revoked = true, updated_at = $7
    where session_id = (select id from raised) and revoked is not true
    returning id, token
  ), successor as (
    insert into refresh_tokens (id, token, parent, user_id, session_id, revoked, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, $6, coalesce((select token from revoked order by id desc limit 1), ''), $3::uuid::text, id, false, $7, $7,
      ${noInstance}
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
