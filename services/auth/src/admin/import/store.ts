import { type AuditEntry, auditInsert } from '../../audit/audit-log.ts';
import type { Queryable } from '../../db/connection.ts';
import { emptyUserColumnNames, emptyUserColumnValues, noInstance } from '../../db/fragments.ts';
import { boolean, integer, jsonOf, type RowOf, uuid } from '../../db/sql-types.ts';
import { parameters, statement } from '../../db/statement.ts';
import type { ColumnCipher } from '../../keys/secrets.ts';
import type { ImportedUser } from './user.ts';

/** Outcome of a user, and the users that have its id, contacts and identities. */
export type ImportedRow = RowOf<typeof importedRow>;

const importedRow = {
  position: integer,
  id: uuid,
  isNew: boolean,
  hasSameId: boolean,
  emailOwner: uuid.orNull,
  phoneOwner: uuid.orNull,
  identityOwner: uuid.orNull,
};

const p = {
  ...parameters(jsonOf<readonly object[]>(), 'users'),
  ...parameters(boolean, 'isStored'),
};

// The lookups use the unique indexes. With `on conflict`, a row that another transaction inserts at
// the same time is neither new nor found.
const importUsers = statement(importedRow)`
  with input as materialized (
    select * from jsonb_to_recordset(${p.users}::jsonb) as i(position int, id uuid, aud text, role text, email text, phone text,
      hash text, "emailConfirmedAt" timestamptz, "phoneConfirmedAt" timestamptz, "appMetadata" jsonb, "userMetadata" jsonb,
      "createdAt" timestamptz, "lastSignInAt" timestamptz, "bannedUntil" timestamptz, identities jsonb)
  ), found as materialized (
    select i.position, i.id, exists (select from users u where u.id = i.id) as "hasSameId",
      (select u.id from users u where u.email = i.email and u.is_sso_user = false) as "emailOwner",
      (select u.id from users u where u.phone = i.phone) as "phoneOwner",
      (select d.user_id from jsonb_to_recordset(i.identities) as n(provider text, "providerId" text)
        join identities d on d.provider_id = n."providerId" and d.provider = n.provider limit 1) as "identityOwner"
    from input i
  ), new_user as (
    insert into users (id, instance_id, aud, role, email, phone, encrypted_password, email_confirmed_at, phone_confirmed_at,
      raw_app_meta_data, raw_user_meta_data, is_anonymous, created_at, updated_at, last_sign_in_at, banned_until,
      is_sso_user, is_super_admin, email_change_confirm_status, ${emptyUserColumnNames})
    select i.id, ${noInstance}, i.aud, i.role, i.email, i.phone, coalesce(i.hash, ''), i."emailConfirmedAt",
      i."phoneConfirmedAt", i."appMetadata", i."userMetadata", false, i."createdAt", i."createdAt", i."lastSignInAt",
      i."bannedUntil", false, false, 0, ${emptyUserColumnValues}
    from input i join found f using (position)
    where ${p.isStored}::boolean and not f."hasSameId" and num_nonnulls(f."emailOwner", f."phoneOwner", f."identityOwner") = 0
    on conflict do nothing
    returning id
  ), new_identity as (
    insert into identities (id, provider, provider_id, identity_data, user_id, last_sign_in_at, created_at, updated_at)
    select gen_random_uuid(), n.provider, n."providerId", n.data, i.id, i."lastSignInAt", i."createdAt", i."createdAt"
    from new_user join input i using (id),
      jsonb_to_recordset(i.identities) as n(provider text, "providerId" text, data jsonb)
  ), audit as (${auditInsert('new_user')})
  select f.*, n.id is not null as "isNew" from found f left join new_user n using (id) order by f.position`;

// A plan that was made while the tables were small would scan them for each row. No events: an
// import would flood the webhook.
const prepare = statement({})`
  select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('tollgate.events', 'off', true)`;

/** Inserts users in batches. Requires a transaction. */
export class ImportStore {
  readonly #sql: Queryable;
  readonly #cipher: ColumnCipher;

  constructor(sql: Queryable, cipher: ColumnCipher) {
    this.#sql = sql;
    this.#cipher = cipher;
  }

  /**
   * Inserts users whose id, contacts and identities are new, with their identities; none with
   * `isDryRun`. Within the batch they must be unique. Throws a unique violation if
   * another transaction inserts an identity.
   */
  async insert(
    users: readonly ImportedUser[],
    { isDryRun, audit }: { readonly isDryRun: boolean; readonly audit: AuditEntry },
  ): Promise<readonly ImportedRow[]> {
    const input = users.map(({ passwordHash, email, phone, ...user }, position) => ({
      ...user,
      position,
      email: email || null,
      phone: phone || null,
      hash: passwordHash === undefined ? null : this.#cipher.encrypt(user.id, passwordHash),
    }));
    await prepare.run(this.#sql, {});
    return importUsers.run(this.#sql, { users: input, isStored: !isDryRun, audit });
  }
}
