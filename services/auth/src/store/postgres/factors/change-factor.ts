import type { FactorStore } from '../../../ports/factor-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { type Queryable, query } from '../query.ts';
import { isUniqueViolation } from '../unique-violation.ts';
import { lockOwner } from '../users/lock-owner.ts';

const remove = `
  with owner as (${lockOwner('$2')}), removed as (
    delete from mfa_factors where id = $1 and user_id = (select id from owner) returning id, factor_type
  ), lowered as (
    update sessions set aal = 'aal1', factor_id = null, updated_at = $3
    where user_id = $2 and factor_id = (select id from removed)
    returning id
  ), proofs as (
    delete from mfa_amr_claims
    where session_id in (select id from lowered) and authentication_method in (
      select case factor_type when 'totp' then 'totp' else 'mfa/' || factor_type end from removed)
  ), audit as (${auditInsert(4, 'removed')})
  select id from removed`;

const update = `
  with updated as (
    update mfa_factors
    set friendly_name = coalesce($4, friendly_name), phone = coalesce($5, phone), updated_at = $3
    where id = $1 and user_id = $2
    returning id
  ), audit as (${auditInsert(6, 'updated')})
  select id from updated`;

/** The functions of {@link FactorStore} for a factor that is there. */
export function changeFactor(sql: Queryable): Pick<FactorStore, 'remove' | 'update'> {
  return {
    async remove({ id, userId }, { at, audit }) {
      return (await query(sql, remove, [id, userId, at, ...auditParameters(audit)])).length > 0;
    },
    async update({ id, userId }, { friendlyName, phone }, { at, audit }) {
      const parameters = [id, userId, at, friendlyName ?? null, phone ?? null, ...auditParameters(audit)];
      try {
        return (await query(sql, update, parameters)).length > 0 ? 'updated' : 'not_found';
      } catch (error) {
        if (isUniqueViolation(error)) return 'name_conflict';
        throw error;
      }
    },
  };
}
