import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { FactorStore } from '../../../ports/factor-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { type Queryable, query } from '../query.ts';

const enroll = `
  with enrolled as (
    insert into mfa_factors (id, user_id, friendly_name, factor_type, status, secret, created_at, updated_at)
    values ($1, $2, $3, 'totp', 'unverified', $4, $5, $5)
    on conflict do nothing
    returning id
  ), audit as (${auditInsert(6, 'enrolled')})
  select id from enrolled`;

const removeUnverified = `
  delete from mfa_factors where user_id = $1 and status = 'unverified' and created_at <= $2`;

/** The functions of {@link FactorStore} that an enrolment calls. */
export function enrollFactor(
  sql: Queryable,
  cipher: ColumnCipher,
): Pick<FactorStore, 'enroll' | 'removeUnverified'> {
  return {
    async enroll({ id, userId, friendlyName, secret, at }, audit) {
      const parameters = [id, userId, friendlyName, cipher.seal(id, secret), at, ...auditParameters(audit)];
      return (await query(sql, enroll, parameters)).length > 0;
    },
    async removeUnverified(userId, before) {
      await query(sql, removeUnverified, [userId, before]);
    },
  };
}
