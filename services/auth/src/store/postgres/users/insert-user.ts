import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { UserStore } from '../../../ports/user-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { emptyUserColumns, noInstance } from '../gotrue-columns.ts';
import { type Queryable, query } from '../query.ts';

// Whatever is unique and taken already, also by a statement that is not committed yet, leaves this one without rows.
const text = `
  with new_user as (
    insert into users (id, instance_id, aud, role, email, phone, encrypted_password, email_confirmed_at, phone_confirmed_at,
      raw_app_meta_data, raw_user_meta_data, is_anonymous, created_at, updated_at, invited_at, banned_until,
      is_sso_user, is_super_admin, email_change_confirm_status, ${emptyUserColumns.join(', ')})
    values ($1, ${noInstance}, $2, $3, nullif($4, ''), nullif($5, ''), coalesce($6, ''), $7, $8,
      $9, $10, $11, $12, $12, $13, $14, false, false, 0, ${emptyUserColumns.map(() => "''").join(', ')})
    on conflict do nothing
    returning id
  ), new_identity as (
    insert into identities (id, provider, provider_id, identity_data, user_id, last_sign_in_at, created_at, updated_at)
    select gen_random_uuid(), i.provider, i."providerId", i.data, u.id, $12, $12, $12
    from new_user u, jsonb_to_recordset($15::jsonb) as i(provider text, "providerId" text, data jsonb)
  ), audit as (${auditInsert(16, 'new_user')})
  select id from new_user`;

/** {@link UserStore.insert} */
export function insertUser(sql: Queryable, cipher: ColumnCipher): UserStore['insert'] {
  return async (user, audit) => {
    const rows = await query(sql, text, [
      user.id,
      user.aud,
      user.role,
      user.email,
      user.phone,
      user.passwordHash === undefined ? null : cipher.seal(user.id, user.passwordHash),
      user.emailConfirmedAt ?? null,
      user.phoneConfirmedAt ?? null,
      user.appMetadata,
      user.userMetadata,
      user.isAnonymous,
      user.createdAt,
      user.invitedAt ?? null,
      user.bannedUntil ?? null,
      user.identities,
      ...auditParameters(audit),
    ]);
    return rows.length > 0;
  };
}
