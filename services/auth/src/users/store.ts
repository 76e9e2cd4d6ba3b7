import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import { isUniqueViolation, type Queryable } from '../db/connection.ts';
import { emptyUserColumnNames, emptyUserColumnValues, jsonObject, noInstance } from '../db/fragments.ts';
import { type CursorPage, Lister, type OrderedPage, type Page, type Position } from '../db/paging.ts';
import { boolean, integer, json, jsonOf, type SqlType, text, timestamptz, uuid } from '../db/sql-types.ts';
import { type Fragment, fragment, join, Parameter, parameters, raw, statement } from '../db/statement.ts';
import type { ColumnCipher } from '../keys/secrets.ts';
import type { NewIdentity, NewUser } from './new-user.ts';
import { isRareProvider, type UserFilter, userListing } from './search.ts';
import { emptyTokenColumns, tokenTypes } from './token-columns.ts';
import {
  type Contact,
  idsByEmail,
  toUser,
  type User,
  type UserChanges,
  userColumns,
  userRow,
} from './user.ts';

type UserUpdate =
  | { readonly ok: true; readonly user: User }
  | { readonly ok: false; readonly reason: 'not_found' | 'email_exists' | 'phone_exists' };

/** Users with identities and factors. Soft-deleted users are never found. */
export class UserStore {
  readonly #sql: Queryable;
  readonly #lister: Lister<UserFilter, typeof userListing.row>;
  readonly #cipher: ColumnCipher;
  readonly #onChange: ((userId: string) => void) | undefined;

  constructor(sql: Queryable, cipher: ColumnCipher, onChange?: (userId: string) => void) {
    this.#sql = sql;
    this.#lister = new Lister(sql, userListing);
    this.#cipher = cipher;
    this.#onChange = onChange;
  }

  async findById(id: string): Promise<User | undefined> {
    const row = await findById.first(this.#sql, { id });
    return row && toUser(row);
  }

  /** Roles by id, of the users that exist. */
  async findRoles(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const rows = ids.length === 0 ? [] : await findRoles.run(this.#sql, { ids });
    return new Map(rows.map(({ id, role }) => [id, role ?? '']));
  }

  async findByEmail(email: string, aud: string): Promise<User | undefined> {
    const row = await findByEmail.first(this.#sql, { email, aud });
    return row && toUser(row);
  }

  async findByPhone(phone: string, aud: string): Promise<User | undefined> {
    const row = await findByPhone.first(this.#sql, { phone, aud });
    return row && toUser(row);
  }

  findByContact(contact: Contact, aud: string): Promise<User | undefined> {
    return contact.kind === 'email'
      ? this.findByEmail(contact.email, aud)
      : this.findByPhone(contact.phone, aud);
  }

  async list(filter: UserFilter, page: OrderedPage): Promise<Page<User>> {
    const { total, items } = await this.#lister.list(await this.#withRarity(filter), page);
    return { total, items: items.map(toUser) };
  }

  /** Lists without the total: says whether another page follows. */
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
    const row = await isRareProvider.first(this.#sql, { provider });
    return row?.rare === true ? { ...others, rareProvider: provider } : filter;
  }

  /** Which value of a new user belongs to another user already, in any audience. */
  async findTaken({
    id,
    email,
    phone,
  }: Pick<NewUser, 'id' | 'email' | 'phone'>): Promise<'email' | 'phone' | 'id' | undefined> {
    // An empty contact belongs to no user.
    const contacts = { email: email || null, phone: phone || null };
    return (await findTaken.first(this.#sql, { id, ...contacts }))?.taken;
  }

  /**
   * Returns false when another user has the email, phone or identity, also one inserted
   * concurrently.
   */
  async insert(user: NewUser, audit: AuditEntry): Promise<boolean> {
    const { id, passwordHash } = user;
    return insert.matches(this.#sql, {
      invitedAt: undefined,
      bannedUntil: undefined,
      ...user,
      passwordHash: passwordHash && this.#cipher.encrypt(id, passwordHash),
      audit,
    });
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
    try {
      const row = await update(keys).first(this.#sql, { id, at, audit, identities, ...values });
      this.#onChange?.(id);
      if (row === undefined) return { ok: false, reason: 'not_found' };
      // A statement does not see the identities that it writes.
      const user = identities.length > 0 ? await findUpdated.first(this.#sql, { id }) : row;
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
    const isDeleted = await deleteUser.matches(this.#sql, { id, audit });
    this.#onChange?.(id);
    return isDeleted;
  }

  /**
   * Keeps the row for references only: contacts and identities are hashed; metadata, sessions,
   * factors and tokens are deleted. Returns false when there is no such user.
   */
  async softDelete(id: string, options: { readonly at: Date; readonly audit: AuditEntry }): Promise<boolean> {
    const isDeleted = await softDelete.matches(this.#sql, { id, ...options });
    this.#onChange?.(id);
    return isDeleted;
  }

  /** Deletes an unconfirmed user whose confirmation could not be sent. */
  async discardUnconfirmed(id: string): Promise<void> {
    await discardUnconfirmed.run(this.#sql, { id });
  }

  /**
   * Counts one of the two addresses that confirm an email change. Returns how many have confirmed.
   */
  async countEmailConfirmation(id: string, at: Date): Promise<number> {
    return (await countEmailConfirmation.first(this.#sql, { id, at }))?.confirmed ?? 0;
  }

  /**
   * No-op unless the stored hash is still `from`: a stale rehash must not undo a password change.
   */
  async rehashPassword(
    id: string,
    { from, to }: { readonly from: string; readonly to: string },
  ): Promise<void> {
    await rehashPassword.run(this.#sql, { id, from, to: this.#cipher.encrypt(id, to) });
  }
}

const p = {
  ...parameters(uuid, 'id'),
  ...parameters(uuid.list, 'ids'),
  ...parameters(text, 'aud', 'role', 'from', 'to'),
  ...parameters(text.orNull, 'email', 'phone', 'passwordHash'),
  ...parameters(timestamptz.orNull, 'emailConfirmedAt', 'phoneConfirmedAt', 'invitedAt', 'bannedUntil'),
  ...parameters(json, 'appMetadata', 'userMetadata'),
  ...parameters(boolean, 'isAnonymous'),
  ...parameters(timestamptz, 'createdAt', 'at'),
  ...parameters(jsonOf<readonly NewIdentity[]>(), 'identities'),
};

const findById = statement(userRow)`
  select ${userColumns} from users u where u.id = ${p.id} and u.deleted_at is null`;
const findRoles = statement({ id: uuid, role: text.orNull })`
  select id, role from users where id = any(${p.ids}::uuid[]) and deleted_at is null`;
const findByEmail = statement(userRow)`select ${userColumns} from users u
  where u.id = any(array(${idsByEmail(fragment`array[${p.email}::text]`)}))
    and u.aud = ${p.aud} and u.is_sso_user = false and u.deleted_at is null
  order by u.email = ${p.email} desc limit 1`;
const findByPhone = statement(userRow)`select ${userColumns} from users u
  where u.phone = ${p.phone} and u.aud = ${p.aud} and u.is_sso_user = false and u.deleted_at is null`;

const findTaken = statement({ taken: text.as<'email' | 'phone' | 'id'>() })`
  select taken from (
    select case when lower(email) = ${p.email} and is_sso_user = false then 'email' when phone = ${p.phone} then 'phone' else 'id' end as taken
    from users
    where (id = any(array(${idsByEmail(fragment`array[${p.email}::text]`)})) and is_sso_user = false) or phone = ${p.phone} or id = ${p.id}
  ) t
  order by array_position(array['email', 'phone', 'id'], taken) limit 1`;

// A unique value that exists already, also in an uncommitted transaction, leaves this without rows.
const insert = statement({})`
  with new_user as (
    insert into users (id, instance_id, aud, role, email, phone, encrypted_password, email_confirmed_at, phone_confirmed_at,
      raw_app_meta_data, raw_user_meta_data, is_anonymous, created_at, updated_at, invited_at, banned_until,
      is_sso_user, is_super_admin, email_change_confirm_status, ${emptyUserColumnNames})
    values (${p.id}, ${noInstance}, ${p.aud}, ${p.role}, nullif(${p.email}, ''), nullif(${p.phone}, ''),
      coalesce(${p.passwordHash}, ''), ${p.emailConfirmedAt}, ${p.phoneConfirmedAt},
      ${p.appMetadata}, ${p.userMetadata}, ${p.isAnonymous}, ${p.createdAt}, ${p.createdAt}, ${p.invitedAt},
      ${p.bannedUntil}, false, false, 0, ${emptyUserColumnValues})
    on conflict do nothing
    returning id
  ), new_identity as (
    insert into identities (id, provider, provider_id, identity_data, user_id, last_sign_in_at, created_at, updated_at)
    select gen_random_uuid(), i.provider, i."providerId", i.data, u.id, ${p.createdAt}, ${p.createdAt}, ${p.createdAt}
    from new_user u, jsonb_to_recordset(${p.identities}::jsonb) as i(provider text, "providerId" text, data jsonb)
  ), audit as (${auditInsert('new_user')})
  select id from new_user`;

type ReadChange = (changes: UserChanges) => unknown;

/** Assignment of each change. */
const assignments: { readonly [K in keyof UserChanges]-?: (read: ReadChange) => Fragment<UserChanges> } = {
  aud: assign('aud', text),
  role: assign('role', text),
  email: assign('email', text),
  phone: assign('phone', text),
  passwordHash: assignText('encrypted_password'),
  emailConfirmedAt: assign('email_confirmed_at', timestamptz),
  phoneConfirmedAt: assign('phone_confirmed_at', timestamptz),
  invitedAt: assign('invited_at', timestamptz),
  newEmail: assignText('email_change'),
  emailChangeConfirmStatus: assign('email_change_confirm_status', integer),
  newPhone: assignText('phone_change'),
  bannedUntil: assign('banned_until', timestamptz),
  isAnonymous: assign('is_anonymous', boolean),
  appMetadata: merge('raw_app_meta_data'),
  userMetadata: merge('raw_user_meta_data'),
};

const changeKeys = Object.keys(assignments) as readonly (keyof UserChanges)[]; // of the constant above

function assign(column: string, type: SqlType<unknown>) {
  return (read: ReadChange) => fragment`${raw(column)} = ${new Parameter(type, read)}`;
}

function assignText(column: string) {
  return (read: ReadChange) => fragment`${raw(column)} = coalesce(${new Parameter(text, read)}, '')`;
}

function merge(column: string) {
  return (read: ReadChange) => fragment`${raw(column)} = coalesce((
    select jsonb_object_agg(key, value) from jsonb_each(${jsonObject(column)} || ${new Parameter(json, read)}::jsonb)
    where value <> 'null'), '{}')`;
}

/** Composed for each call: the text depends on which members change. */
function update(keys: readonly (keyof UserChanges)[]) {
  const assigned = keys.map((key) => fragment`${assignments[key](({ [key]: value }) => value)}, `);
  return statement(userRow)`
    with updated as (
      update users set ${join(assigned, '')}updated_at = ${p.at} where id = ${p.id} and deleted_at is null returning *
    ), identified as (
      insert into identities as i (id, provider, provider_id, identity_data, user_id, last_sign_in_at, created_at, updated_at)
      select gen_random_uuid(), t.provider, t."providerId", t.data, u.id, ${p.at}, ${p.at}, ${p.at}
      from updated u, jsonb_to_recordset(${p.identities}::jsonb) as t(provider text, "providerId" text, data jsonb)
      on conflict (provider_id, provider) do update
        set identity_data = ${jsonObject('i.identity_data')} || excluded.identity_data, updated_at = excluded.updated_at
        where i.user_id = excluded.user_id
    ), audit as (${auditInsert('updated')})
    select ${userColumns} from updated u`;
}

const findUpdated = statement(userRow)`select ${userColumns} from users u where u.id = ${p.id}`;

// Everything but flows is deleted by the foreign keys.
const deleteUser = statement({})`
  with deleted as (
    delete from users where id = ${p.id} and deleted_at is null returning id
  ), flows as (
    delete from flow_state where user_id = (select id from deleted)
  ), audit as (${auditInsert('deleted')})
  select id from deleted`;

/** Base64url SHA-256, salted with the user id so that known addresses cannot be looked up. */
function digest(column: string) {
  const hash = fragment`sha256(convert_to(${p.id}::text || ${raw(column)}, 'UTF8'))`;
  return fragment`rtrim(translate(encode(${hash}, 'base64'), '+/', '-_'), '=')`;
}

function hide(name: string) {
  const column = raw(name);
  return fragment`${column} = case when ${column} <> '' then ${digest(name)} else ${column} end`;
}

const softDelete = statement({})`
  with deleted as (
    update users set ${hide('email')}, ${hide('phone')}, ${hide('email_change')}, ${hide('phone_change')},
      ${emptyTokenColumns}, encrypted_password = '', raw_user_meta_data = '{}', raw_app_meta_data = '{}',
      deleted_at = ${p.at}, updated_at = ${p.at}
    where id = ${p.id}::uuid and deleted_at is null
    returning id
  ), hidden as (
    update identities set provider_id = ${digest('provider_id')}, identity_data = '{}', updated_at = ${p.at}
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
  ), audit as (${auditInsert('deleted')})
  select id from deleted`;

// A concurrent request for the same contact may have sent a token already.
const discardUnconfirmed = statement({})`delete from users u where id = ${p.id} and confirmed_at is null
  and not exists (select 1 from one_time_tokens t where t.user_id = u.id)
  and concat(${raw(tokenTypes.join(', '))}) = ''`;

const rehashPassword = statement({})`
  update users set encrypted_password = ${p.to} where id = ${p.id} and encrypted_password = ${p.from}`;

// Concurrent confirmations wait for the row lock, so each is counted.
const countEmailConfirmation = statement({ confirmed: integer.notNull })`
  update users set email_change_confirm_status = least(coalesce(email_change_confirm_status, 0) + 1, 2), updated_at = ${p.at}
  where id = ${p.id} returning email_change_confirm_status as confirmed`;
