import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { UserChanges, UserStore, UserUpdate } from '../../../ports/user-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { type Queryable, query } from '../query.ts';
import { isUniqueViolation } from '../unique-violation.ts';
import { userColumns, userOf } from './user-columns.ts';

/** Columns of the changes, and how the parameter `$n` becomes their value. */
const columns: { readonly [K in keyof UserChanges]-?: (parameter: string) => string } = {
  aud: assign('aud'),
  role: assign('role'),
  email: assign('email'),
  phone: assign('phone'),
  passwordHash: (parameter) => `encrypted_password = coalesce(${parameter}, '')`,
  emailConfirmedAt: assign('email_confirmed_at'),
  phoneConfirmedAt: assign('phone_confirmed_at'),
  invitedAt: assign('invited_at'),
  newEmail: (parameter) => `email_change = coalesce(${parameter}, '')`,
  emailChangeConfirmStatus: assign('email_change_confirm_status'),
  newPhone: (parameter) => `phone_change = coalesce(${parameter}, '')`,
  bannedUntil: assign('banned_until'),
  isAnonymous: assign('is_anonymous'),
  appMetadata: merge('raw_app_meta_data'),
  userMetadata: merge('raw_user_meta_data'),
};

const keys = Object.keys(columns) as readonly (keyof UserChanges)[]; // of the constant just above

function assign(column: string): (parameter: string) => string {
  return (parameter) => `${column} = ${parameter}`;
}

function merge(column: string): (parameter: string) => string {
  return (parameter) => `${column} = coalesce((
    select jsonb_object_agg(key, value) from jsonb_each(coalesce(${column}, '{}') || ${parameter}::jsonb)
    where value <> 'null'), '{}')`;
}

/** Id, time, the audit entry and identities come first. */
const firstChange = 7;

const byId = `select ${userColumns} from users u where u.id = $1`;

/** Which columns change differs from call to call; the text is put together from the constants above alone. */
function textOf(changed: readonly (keyof UserChanges)[]): string {
  const assignments = changed.map((key, index) => columns[key](`$${firstChange + index}`));
  return `
    with updated as (
      update users set ${[...assignments, 'updated_at = $2'].join(', ')} where id = $1 and deleted_at is null returning *
    ), identified as (
      insert into identities as i (id, provider, provider_id, identity_data, user_id, last_sign_in_at, created_at, updated_at)
      select gen_random_uuid(), t.provider, t."providerId", t.data, u.id, $2, $2, $2
      from updated u, jsonb_to_recordset($6::jsonb) as t(provider text, "providerId" text, data jsonb)
      on conflict (provider_id, provider) do update
        set identity_data = i.identity_data || excluded.identity_data, updated_at = excluded.updated_at
        where i.user_id = excluded.user_id
    ), audit as (${auditInsert(3, 'updated')})
    select ${userColumns} from updated u`;
}

/** {@link UserStore.update} */
export function updateUser(sql: Queryable, cipher: ColumnCipher): UserStore['update'] {
  return async (id, given, { at, audit, identities = [] }) => {
    const { passwordHash } = given;
    const changes = passwordHash ? { ...given, passwordHash: cipher.seal(id, passwordHash) } : given;
    const changed = keys.filter((key) => changes[key] !== undefined);
    const parameters = [id, at, ...auditParameters(audit), identities, ...changed.map((key) => changes[key])];
    try {
      const [row] = await query(sql, textOf(changed), parameters);
      if (row === undefined) return { ok: false, reason: 'not_found' };
      // A statement does not see the identities that it writes.
      const [user] = identities.length > 0 ? await query(sql, byId, [id]) : [row];
      return { ok: true, user: userOf(user ?? row) };
    } catch (error) {
      const taken = takenContact(error);
      if (taken === undefined) throw error;
      return taken;
    }
  };
}

function takenContact(error: unknown): UserUpdate | undefined {
  if (!isUniqueViolation(error)) return undefined;
  // Parsed boundary: such errors of the server name what they violate.
  const { constraint_name: constraint = '' } = error as { constraint_name?: string };
  return { ok: false, reason: constraint.includes('phone') ? 'phone_exists' : 'email_exists' };
}
