import { type AuditEntry, auditInsert, auditParameters } from '../db/audit-log.ts';
import {
  containing,
  emptyUserColumns,
  isUniqueViolation,
  noInstance,
  type Queryable,
  query,
} from '../db/query.ts';
import type { Page, PageRequest } from '../http/pagination.ts';
import type { ColumnCipher } from '../keys/column-encryption.ts';
import { emptyTokenColumns, tokenTypes } from '../verification/store.ts';
import { userColumns, userOf } from './columns.ts';
import type { User } from './user.ts';
import type { JsonObject } from './user-json.ts';

/** A way in which a user is known: `providerId` is who they are there, for email and phone their own id. */
export interface NewIdentity {
  readonly provider: string;
  readonly providerId: string;
  readonly data: JsonObject;
}

/** A user to be created, with the identities they are known by. */
export interface NewUser {
  readonly id: string;
  readonly aud: string;
  readonly role: string;
  /** Empty for none. */
  readonly email: string;
  /** Empty for none. */
  readonly phone: string;
  readonly passwordHash: string | undefined;
  readonly emailConfirmedAt: Date | undefined;
  readonly phoneConfirmedAt: Date | undefined;
  readonly appMetadata: JsonObject;
  readonly userMetadata: JsonObject;
  readonly isAnonymous: boolean;
  readonly createdAt: Date;
  readonly invitedAt?: Date | undefined;
  readonly bannedUntil?: Date | undefined;
  readonly identities: readonly NewIdentity[];
}

/** What is to change of a user; `null` takes a value away, what is absent stays. */
export interface UserChanges {
  readonly aud?: string;
  readonly role?: string;
  readonly email?: string | null;
  readonly phone?: string | null;
  readonly passwordHash?: string | null;
  readonly emailConfirmedAt?: Date | null;
  readonly phoneConfirmedAt?: Date | null;
  readonly invitedAt?: Date | null;
  readonly newEmail?: string | null;
  readonly emailChangeConfirmStatus?: number;
  readonly newPhone?: string | null;
  readonly bannedUntil?: Date | null;
  readonly isAnonymous?: boolean;
  /** Merged into what is there, at the top level only; a `null` in it takes that key away. */
  readonly appMetadata?: JsonObject;
  /** Merged as `appMetadata` is. */
  readonly userMetadata?: JsonObject;
}

/** The user as changed, or why there is none. */
type UserUpdate =
  | { readonly ok: true; readonly user: User }
  | { readonly ok: false; readonly reason: 'not_found' | 'email_exists' | 'phone_exists' };

/** Which users are listed, and in which order of their creation. */
interface UserQuery extends PageRequest {
  readonly aud: string;
  /** Part of email, phone or `full_name`; empty for all. */
  readonly filter: string;
  readonly order: 'asc' | 'desc';
}

/** Users, each with identities and factors. Deleted ones are found by nobody. */
export interface UserStore {
  findById(id: string): Promise<User | undefined>;
  findByEmail(email: string, aud: string): Promise<User | undefined>;
  findByPhone(phone: string, aud: string): Promise<User | undefined>;
  /** A part of the users. */
  list(query: UserQuery): Promise<Page<User>>;
  /** What of a user-to-be somebody has already, of whatever audience, if anything. */
  findTaken(of: Pick<NewUser, 'id' | 'email' | 'phone'>): Promise<'email' | 'phone' | 'id' | undefined>;
  /** Answers false when somebody has that email, phone or identity: also when two ask at the same moment. */
  insert(user: NewUser, audit: AuditEntry): Promise<boolean>;
  /**
   * Changes a user, in one statement. Of `identities` those that the user has get the new data merged in, the others are added;
   * what `appMetadata` says of providers is for the caller to change.
   */
  update(
    id: string,
    changes: UserChanges,
    of: { readonly at: Date; readonly audit: AuditEntry; readonly identities?: readonly NewIdentity[] },
  ): Promise<UserUpdate>;
  /** Deletes a user and whatever is theirs. Answers false when there is none. */
  delete(id: string, audit: AuditEntry): Promise<boolean>;
  /**
   * Leaves of a user only what references need: contacts and identities become hashes, and metadata, sessions, factors and tokens go.
   * Answers false when there is none.
   */
  softDelete(id: string, of: { readonly at: Date; readonly audit: AuditEntry }): Promise<boolean>;
  /** Removes a user who could not be told to confirm, unless somebody has been told, or has confirmed, since. */
  discardUnconfirmed(id: string): Promise<void>;
  /** Counts one of the two addresses that confirm a change of email; answers how many have by now. */
  countEmailConfirmation(id: string, at: Date): Promise<number>;
  /** Replaces the password hash if it still is `from`, as it was found: a stale hash must not undo a change of password. */
  rehashPassword(id: string, change: { readonly from: string; readonly to: string }): Promise<void>;
}

const byId = `select ${userColumns} from users u where u.id = $1 and u.deleted_at is null`;
const byEmail = `select ${userColumns} from users u
  where u.email = $1 and u.aud = $2 and u.is_sso_user = false and u.deleted_at is null`;
const byPhone = `select ${userColumns} from users u
  where u.phone = $1 and u.aud = $2 and u.is_sso_user = false and u.deleted_at is null`;

/** The `find…` functions of {@link UserStore}. */
export function findUser(sql: Queryable): Pick<UserStore, 'findById' | 'findByEmail' | 'findByPhone'> {
  const find = async (text: string, parameters: readonly string[]) => {
    const [row] = await query(sql, text, parameters);
    return row && userOf(row);
  };
  return {
    findById: (id) => find(byId, [id]),
    findByEmail: (email, aud) => find(byEmail, [email, aud]),
    findByPhone: (phone, aud) => find(byPhone, [phone, aud]),
  };
}

const matching = `
  from users u
  where u.aud = $1 and u.deleted_at is null and ($2::text is null
    or u.email like lower($2) or u.phone like $2 or u.raw_user_meta_data ->> 'full_name' ilike $2)`;

/** The count is there also when the page is empty. */
function textOf(order: 'asc' | 'desc'): string {
  return `select t.total, p.* from (select count(*)::int as total ${matching}) t left join lateral (
      select ${userColumns} ${matching} order by u.created_at ${order}, u.id limit $3 offset $4
    ) p on true
    order by p.created_at ${order}, p.id`;
}

const texts = { asc: textOf('asc'), desc: textOf('desc') } as const;

/** {@link UserStore.list} */
export function listUsers(sql: Queryable): UserStore['list'] {
  return async ({ aud, filter, order, limit, offset }) => {
    const pattern = filter === '' ? null : containing(filter);
    const rows = await query(sql, texts[order], [aud, pattern, limit, offset]);
    // Parsed boundary: the column selected above.
    const total = (rows[0] as { readonly total: number } | undefined)?.total ?? 0;
    return { total, items: rows.filter(({ id }) => id !== null).map(userOf) };
  };
}

const text = `
  select taken from (
    select case when email = $2 and is_sso_user = false then 'email' when phone = $3 then 'phone' else 'id' end as taken
    from users
    where (email = $2 and is_sso_user = false) or phone = $3 or id = $1
  ) t
  order by array_position(array['email', 'phone', 'id'], taken) limit 1`;

/** {@link UserStore.findTaken} */
export function findTaken(sql: Queryable): UserStore['findTaken'] {
  return async ({ id, email, phone }) => {
    const [row] = await query(sql, text, [id, email || null, phone || null]);
    // Parsed boundary: one of the constants above.
    return (row as { readonly taken: 'email' | 'phone' | 'id' } | undefined)?.taken;
  };
}

// Whatever is unique and taken already, also by a statement that is not committed yet, leaves this one without rows.
const insertUserText = `
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
    const rows = await query(sql, insertUserText, [
      user.id,
      user.aud,
      user.role,
      user.email,
      user.phone,
      user.passwordHash === undefined ? null : cipher.encrypt(user.id, user.passwordHash),
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

const updateUserById = `select ${userColumns} from users u where u.id = $1`;

/** Which columns change differs from call to call; the text is put together from the constants above alone. */
function updateUserTextOf(changed: readonly (keyof UserChanges)[]): string {
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
    const changes = passwordHash ? { ...given, passwordHash: cipher.encrypt(id, passwordHash) } : given;
    const changed = keys.filter((key) => changes[key] !== undefined);
    const parameters = [id, at, ...auditParameters(audit), identities, ...changed.map((key) => changes[key])];
    try {
      const [row] = await query(sql, updateUserTextOf(changed), parameters);
      if (row === undefined) return { ok: false, reason: 'not_found' };
      // A statement does not see the identities that it writes.
      const [user] = identities.length > 0 ? await query(sql, updateUserById, [id]) : [row];
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

/**
 * Part of a statement that takes away rows (sessions, factors, tokens) of the user whose id is `parameter`. Its other parts ask for the
 * id that it answers, so that they begin when it has the row of the user. Statements of one user then come one after another; in any
 * order of their own two of them could each hold what the other waits for. Sign-ins and refreshes do not wait: they take away nothing.
 */
export function lockOwner(parameter: `$${number}`): string {
  return `select id from users where id = ${parameter} for no key update`;
}

// Another request for the same contact may have sent something in the meantime.
const discardUnconfirmedText = `delete from users u where id = $1 and confirmed_at is null
  and not exists (select 1 from one_time_tokens t where t.user_id = u.id)
  and concat(${tokenTypes.join(', ')}) = ''`;

/** {@link UserStore.discardUnconfirmed} */
export function discardUnconfirmed(sql: Queryable): UserStore['discardUnconfirmed'] {
  return async (id) => {
    await query(sql, discardUnconfirmedText, [id]);
  };
}

const rehashPasswordText =
  'update users set encrypted_password = $3 where id = $1 and encrypted_password = $2';

/** {@link UserStore.rehashPassword} */
export function rehashPassword(sql: Queryable, cipher: ColumnCipher): UserStore['rehashPassword'] {
  return async (id, { from, to }) => {
    await query(sql, rehashPasswordText, [id, from, cipher.encrypt(id, to)]);
  };
}

// Of two that come together the second waits for the row of the user, and then counts on.
const countEmailConfirmationText = `
  update users set email_change_confirm_status = least(coalesce(email_change_confirm_status, 0) + 1, 2), updated_at = $2
  where id = $1 returning email_change_confirm_status as confirmed`;

/** {@link UserStore.countEmailConfirmation} */
export function countEmailConfirmation(sql: Queryable): UserStore['countEmailConfirmation'] {
  return async (id, at) => {
    const [row] = await query(sql, countEmailConfirmationText, [id, at]);
    return Number(row?.confirmed ?? 0);
  };
}
