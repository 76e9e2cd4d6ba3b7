import type { UserStore } from '../../../ports/user-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { emptyTokenColumns } from '../one-time-tokens/token-columns.ts';
import { type Queryable, query } from '../query.ts';

// All but flows goes with the user.
const remove = `
  with deleted as (
    delete from users where id = $1 and deleted_at is null returning id
  ), flows as (
    delete from flow_state where user_id = (select id from deleted)
  ), audit as (${auditInsert(2, 'deleted')})
  select id from deleted`;

/** Base64url of the SHA-256 of the user's id and the value: without the id a list of addresses would tell who it was. */
function digest(value: string): string {
  const hash = `sha256(convert_to($1::text || ${value}, 'UTF8'))`;
  return `rtrim(translate(encode(${hash}, 'base64'), '+/', '-_'), '=')`;
}

const hide = (column: string): string =>
  `${column} = case when ${column} <> '' then ${digest(column)} else ${column} end`;

const softRemove = `
  with deleted as (
    update users set ${hide('email')}, ${hide('phone')}, ${hide('email_change')}, ${hide('phone_change')},
      ${emptyTokenColumns}, encrypted_password = '', raw_user_meta_data = '{}', raw_app_meta_data = '{}', deleted_at = $2, updated_at = $2
    where id = $1::uuid and deleted_at is null
    returning id
  ), hidden as (
    update identities set provider_id = ${digest('provider_id')}, identity_data = '{}', updated_at = $2
    where user_id = (select id from deleted)
  ), ended as (
    delete from sessions where user_id = (select id from deleted)
  ), unenrolled as (
    delete from mfa_factors where user_id = (select id from deleted)
  ), tokens as (
    delete from one_time_tokens where user_id = (select id from deleted)
  ), flows as (
    delete from flow_state where user_id = (select id from deleted)
  ), audit as (${auditInsert(3, 'deleted')})
  select id from deleted`;

/** {@link UserStore.delete} and {@link UserStore.softDelete} */
export function deleteUser(sql: Queryable): Pick<UserStore, 'delete' | 'softDelete'> {
  return {
    async delete(id, audit) {
      return (await query(sql, remove, [id, ...auditParameters(audit)])).length > 0;
    },
    async softDelete(id, { at, audit }) {
      return (await query(sql, softRemove, [id, at, ...auditParameters(audit)])).length > 0;
    },
  };
}
