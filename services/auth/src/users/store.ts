import { type AuditEntry, auditInsert, auditParameters } from '../audit/audit-log.ts';
import {
  emptyUserColumns,
  isUniqueViolation,
  jsonObject,
  noInstance,
  type Queryable,
  query,
} from '../db/connection.ts';
import { type CursorPage, Lister, type OrderedPage, type Page, type Position } from '../db/paging.ts';
import type { ColumnCipher } from '../keys/secrets.ts';
import type { NewIdentity, NewUser } from './new-user.ts';
import { isRareProviderSql, type UserFilter, userListing } from './search.ts';
import { emptyTokenColumns, tokenTypes } from './token-columns.ts';
import { type Contact, idsByEmail, toUser, type User, type UserChanges, userColumns } from './user.ts';

type UserUpdate =
  | { readonly ok: true; readonly user: User }
  | { readonly ok: false; readonly reason: 'not_found' | 'email_exists' | 'phone_exists' };

/** Users with identities and factors. Soft-deleted users are never found. */
export class UserStore {
  readonly #sql: Queryable;
  readonly #lister: Lister<UserFilter>;
  readonly #cipher: ColumnCipher;
  readonly #onChange: ((userId: string) => void) | undefined;

  constructor(sql: Queryable, cipher: ColumnCipher, onChange?: (userId: string) => void) {
    this.#sql = sql;
    this.#lister = new Lister(sql, userListing);
    this.#cipher = cipher;
    this.#onChange = onChange;
  }

  findById(id: string): Promise<User | undefined> {
    return this.#find(findByIdSql, [id]);
  }

  findByEmail(email: string, aud: string): Promise<User | undefined> {
    return this.#find(findByEmailSql, [email, aud]);
  }

  findByPhone(phone: string, aud: string): Promise<User | undefined> {
    return this.#find(findByPhoneSql, [phone, aud]);
  }

  findByContact(contact: Contact, aud: string): Promise<User | undefined> {
    return contact.kind === 'email'
      ? this.findByEmail(contact.email, aud)
      : this.findByPhone(contact.phone, aud);
  }

  async #find(text: string, parameters: readonly string[]): Promise<User | undefined> {
    const [row] = await query(this.#sql, text, parameters);
    return row && toUser(row);
  }

  async list(filter: UserFilter, page: OrderedPage): Promise<Page<User>> {
    const { total, items } = await this.#lister.list(await this.#withRarity(filter), page);
    return { total, items: items.map(toUser) };
  }

  /** As `list`, without the total: whether another page follows. */
  async listUncounted(
    filter: UserFilter,
    page: OrderedPage,
  ): Promise<{ readonly items: readonly User[]; readonly hasMore: boolean }> {
    const { items, hasMore } = await this.#lister.listUncounted(await this.#withRarity(filter), page);
    return { items: items.map(toUser), hasMore };
  }

  /** Users after a position. `next` is undefined for the last page. */
  async listAfter(
    filter: UserFilter,
    page: CursorPage,
  ): Promise<{ readonly items: readonly User[]; readonly next: Position | undefined }> {
    const { items, next } = await this.#lister.listAfter(await this.#withRarity(filter), page);
    return { items: items.map(toUser), next };
  }

  async #withRarity(filter: UserFilter): Promise<UserFilter> {
    const { provider, ...others } = filter;
    if (provider === undefined) return filter;
    const [row] = await query(this.#sql, isRareProviderSql, [provider]);
    return row?.rare === true ? { ...others, rareProvider: provider } : filter;
  }

  /** Which value of a new user belongs to another user already, in any audience. */
  async findTaken({
    id,
    email,
    phone,
  }: Pick<NewUser, 'id' | 'email' | 'phone'>): Promise<'email' | 'phone' | 'id' | undefined> {
    const [row] = await query(this.#sql, findTakenSql, [id, email || null, phone || null]);
    // Parsed boundary: one of the constants of the statement.
    return (row as { readonly taken: 'email' | 'phone' | 'id' } | undefined)?.taken;
  }

  /**
   * Returns false when another user has the email, phone or identity, also one inserted
   * concurrently.
   */
  async insert(user: NewUser, audit: AuditEntry): Promise<boolean> {
    const rows = await query(this.#sql, insertSql, [
      user.id,
      user.aud,
      user.role,
      user.email,
      user.phone,
      user.passwordHash === undefined ? null : this.#cipher.encrypt(user.id, user.passwordHash),
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
  }

  /**
   * Adds `identities`, or merges their data into existing ones. The caller keeps the providers in
   * `appMetadata` in step with them.
   */
  async update(
    id: string,
    changes: UserChanges,
    options: { readonly at: Date; readonly audit: AuditEntry; readonly identities?: readonly NewIdentity[] },
  ): Promise<UserUpdate> {
    const { at, audit, identities = [] } = options;
    const { passwordHash } = changes;
    const values = passwordHash
      ? { ...changes, passwordHash: this.#cipher.encrypt(id, passwordHash) }
      : changes;
    const keys = changeKeys.filter((key) => values[key] !== undefined);
    const parameters = [id, at, ...auditParameters(audit), identities, ...keys.map((key) => values[key])];
    try {
      const [row] = await query(this.#sql, updateSql(keys), parameters);
      this.#onChange?.(id);
      if (row === undefined) return { ok: false, reason: 'not_found' };
      // A statement does not see the identities that it writes.
      const [user] = identities.length > 0 ? await query(this.#sql, findUpdatedSql, [id]) : [row];
      return { ok: true, user: toUser(user ?? row) };
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      // Parsed boundary: the server names the violated constraint.
      const { constraint_name: constraint = '' } = error as { constraint_name?: string };
      return { ok: false, reason: constraint.includes('phone') ? 'phone_exists' : 'email_exists' };
    }
  }

  /**
   * Deletes a user and everything that belongs to them. Returns false when there is no such user.
   */
  async delete(id: string, audit: AuditEntry): Promise<boolean> {
    const rows = await query(this.#sql, deleteSql, [id, ...auditParameters(audit)]);
    this.#onChange?.(id);
    return rows.length > 0;
  }

  /**
   * Keeps the row for references only: contacts and identities are hashed; metadata, sessions,
   * factors and tokens are deleted. Returns false when there is no such user.
   */
  async softDelete(
    id: string,
    { at, audit }: { readonly at: Date; readonly audit: AuditEntry },
  ): Promise<boolean> {
    const rows = await query(this.#sql, softDeleteSql, [id, at, ...auditParameters(audit)]);
    this.#onChange?.(id);
    return rows.length > 0;
  }

  /** Deletes an unconfirmed user whose confirmation could not be sent. */
  async discardUnconfirmed(id: string): Promise<void> {
    await query(this.#sql, discardUnconfirmedSql, [id]);
  }

  /**
   * Counts one of the two addresses that confirm an email change. Returns how many have confirmed.
   */
  async countEmailConfirmation(id: string, at: Date): Promise<number> {
    const [row] = await query(this.#sql, countEmailConfirmationSql, [id, at]);
    return Number(row?.confirmed ?? 0);
  }

  /**
   * No-op unless the stored hash is still `from`: a stale rehash must not undo a password change.
   */
  async rehashPassword(
    id: string,
    { from, to }: { readonly from: string; readonly to: string },
  ): Promise<void> {
    await query(this.#sql, rehashPasswordSql, [id, from, this.#cipher.encrypt(id, to)]);
  }
}

const findByIdSql = `select ${userColumns} from users u where u.id = $1 and u.deleted_at is null`;
const findByEmailSql = `select ${userColumns} from users u
  where u.id = any(array(${idsByEmail('array[$1::text]')}))
    and u.aud = $2 and u.is_sso_user = false and u.deleted_at is null
  order by u.email = $1 desc limit 1`;
const findByPhoneSql = `select ${userColumns} from users u
  where u.phone = $1 and u.aud = $2 and u.is_sso_user = false and u.deleted_at is null`;

const findTakenSql = `
  select taken from (
    select case when lower(email) = $2 and is_sso_user = false then 'email' when phone = $3 then 'phone' else 'id' end as taken
    from users
    where (id = any(array(${idsByEmail('array[$2::text]')})) and is_sso_user = false) or phone = $3 or id = $1
  ) t
  order by array_position(array['email', 'phone', 'id'], taken) limit 1`;

// A unique value that exists already, also in an uncommitted transaction, leaves this without rows.
const insertSql = `
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

/** Assignment of each change, given its parameter `$n`. */
const assignments: { readonly [K in keyof UserChanges]-?: (parameter: string) => string } = {
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

const changeKeys = Object.keys(assignments) as readonly (keyof UserChanges)[]; // of the constant above

function assign(column: string): (parameter: string) => string {
  return (parameter) => `${column} = ${parameter}`;
}

function merge(column: string): (parameter: string) => string {
  return (parameter) => `${column} = coalesce((
    select jsonb_object_agg(key, value) from jsonb_each(${jsonObject(column)} || ${parameter}::jsonb)
    where value <> 'null'), '{}')`;
}

/** Id, time, audit entry and identities come before the changes. */
const firstChange = 7;

/** Built from constants only. */
function updateSql(keys: readonly (keyof UserChanges)[]): string {
  const assigned = keys.map((key, index) => assignments[key](`$${firstChange + index}`));
  return `
    with updated as (
      update users set ${[...assigned, 'updated_at = $2'].join(', ')} where id = $1 and deleted_at is null returning *
    ), identified as (
      insert into identities as i (id, provider, provider_id, identity_data, user_id, last_sign_in_at, created_at, updated_at)
      select gen_random_uuid(), t.provider, t."providerId", t.data, u.id, $2, $2, $2
      from updated u, jsonb_to_recordset($6::jsonb) as t(provider text, "providerId" text, data jsonb)
      on conflict (provider_id, provider) do update
        set identity_data = ${jsonObject('i.identity_data')} || excluded.identity_data, updated_at = excluded.updated_at
        where i.user_id = excluded.user_id
    ), audit as (${auditInsert(3, 'updated')})
    select ${userColumns} from updated u`;
}

const findUpdatedSql = `select ${userColumns} from users u where u.id = $1`;

// Everything but flows is deleted by the foreign keys.
const deleteSql = `
  with deleted as (
    delete from users where id = $1 and deleted_at is null returning id
  ), flows as (
    delete from flow_state where user_id = (select id from deleted)
  ), audit as (${auditInsert(2, 'deleted')})
  select id from deleted`;

/** Base64url SHA-256, salted with the user id so that known addresses cannot be looked up. */
function digest(value: string): string {
  const hash = `sha256(convert_to($1::text || ${value}, 'UTF8'))`;
  return `rtrim(translate(encode(${hash}, 'base64'), '+/', '-_'), '=')`;
}

function hide(column: string): string {
  return `${column} = case when ${column} <> '' then ${digest(column)} else ${column} end`;
}

const softDeleteSql = `
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
  ), passkeys as (
    delete from webauthn_credentials where user_id = (select id from deleted)
  ), passkey_challenges as (
    delete from webauthn_challenges where user_id = (select id from deleted)
  ), tokens as (
    delete from one_time_tokens where user_id = (select id from deleted)
  ), flows as (
    delete from flow_state where user_id = (select id from deleted)
  ), audit as (${auditInsert(3, 'deleted')})
  select id from deleted`;

// A concurrent request for the same contact may have sent a token already.
const discardUnconfirmedSql = `delete from users u where id = $1 and confirmed_at is null
  and not exists (select 1 from one_time_tokens t where t.user_id = u.id)
  and concat(${tokenTypes.join(', ')}) = ''`;

const rehashPasswordSql =
  'update users set encrypted_password = $3 where id = $1 and encrypted_password = $2';

// Concurrent confirmations wait for the row lock, so each is counted.
const countEmailConfirmationSql = `
  update users set email_change_confirm_status = least(coalesce(email_change_confirm_status, 0) + 1, 2), updated_at = $2
  where id = $1 returning email_change_confirm_status as confirmed`;
