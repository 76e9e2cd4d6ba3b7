import type { UserStore } from '../../../ports/user-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { type Queryable, query } from '../query.ts';

// Whatever is unique and taken already, also by a statement that is not committed yet, leaves this one without rows.
const text = `
  with new_user as (
    insert into users (id, instance_id, aud, role, email, phone, encrypted_password, email_confirmed_at, phone_confirmed_at,
      raw_app_meta_data, raw_user_meta_data, is_anonymous, created_at, updated_at)
    values ($1, '00000000-0000-0000-0000-000000000000', $2, $3, nullif($4, ''), nullif($5, ''), coalesce($6, ''), $7, $8,
      $9, $10, $11, $12, $12)
    on conflict do nothing
    returning id
  ), new_identity as (
    insert into identities (provider, provider_id, identity_data, user_id, last_sign_in_at, created_at, updated_at)
    select $13, $14, $15::jsonb, id, $12, $12, $12 from new_user where $13::text is not null
  ), audit as (${auditInsert(16, 'new_user')})
  select id from new_user`;

/** {@link UserStore.insert} */
export function insertUser(sql: Queryable): UserStore['insert'] {
  return async (user, audit) => {
    const { identity } = user;
    const rows = await query(sql, text, [
      user.id,
      user.aud,
      user.role,
      user.email,
      user.phone,
      user.passwordHash ?? null,
      user.emailConfirmedAt ?? null,
      user.phoneConfirmedAt ?? null,
      user.appMetadata,
      user.userMetadata,
      user.isAnonymous,
      user.createdAt,
      identity?.provider ?? null,
      identity?.providerId ?? null,
      identity?.data ?? null,
      ...auditParameters(audit),
    ]);
    return rows.length > 0;
  };
}
