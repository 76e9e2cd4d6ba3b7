import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import type { Queryable } from '../db/connection.ts';
import { batchedInput, column, lockOwner } from '../db/fragments.ts';
import { type CursorPage, Lister, type Listing, type Position } from '../db/paging.ts';
import { boolean, integer, jsonOf, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import {
  bind,
  columnNames,
  type Fragment,
  fragment,
  join,
  parameters,
  raw,
  statement,
} from '../db/statement.ts';
import type { Use } from '../db/usage.ts';
import { type ApiKey, keyRow } from './api-key.ts';

/** The bounds of `SVC_API_KEYS_PER_USER` and `…_PER_ORGANIZATION`, twice because of rotations. */
const maxListed = 2_000;

const p = {
  ...parameters(jsonOf<ApiKey>(), 'key'),
  ...parameters(jsonOf<readonly ApiKey[]>(), 'keys'),
  ...parameters(boolean, 'isStored'),
  ...parameters(uuid, 'id'),
  ...parameters(uuid.orNull, 'userId', 'orgId'),
  ...parameters(uuid, 'ownerId'),
  ...parameters(text, 'digest'),
  ...parameters(timestamptz, 'version', 'at', 'validUntil'),
};

const columns = columnNames(keyRow);
const given = fragment`select ${columns} from jsonb_populate_record(null::api_keys, ${p.key}::jsonb)`;

/** The columns that an update may change. */
const changed = raw(
  'name, scopes, admin_scopes, role, plan, rate_limit, expires_at, allowed_networks, metadata, disabled, updated_at',
);

const find = statement(keyRow)`select ${columns} from api_keys where id = ${p.id}`;

const insert = statement({ has_owner: boolean })`
  with owner as (
    select from users where id = ${p.userId} and deleted_at is null for key share
  ), owning_organization as (
    select from organizations where id = ${p.orgId} for key share
  ), created as (
    insert into api_keys (${columns}, digest)
    select g.*, ${p.digest} from (${given}) g
    where (${p.userId}::uuid is null or exists (select from owner))
      and (${p.orgId}::uuid is null or exists (select from owning_organization))
    returning id
  ), audit as (${auditInsert('created')})
  select exists (select from created) as has_owner`;

const update = statement({})`
  with updated as (
    update api_keys set (${changed}) = (select ${changed} from jsonb_populate_record(null::api_keys, ${p.key}::jsonb))
    where id = ${p.id} and updated_at = ${p.version} returning id
  ), audit as (${auditInsert('updated')})
  select id from updated`;

/** The keys of a user or an organization. */
const owned = fragment`(user_id = ${p.ownerId} or org_id = ${p.ownerId})`;

const listOwned = statement(keyRow)`select ${columns} from api_keys
  where ${owned} order by created_at desc, id desc limit ${raw(maxListed)}`;

const lock = statement({})`${lockOwner(p.ownerId)}`;

// The clean-up removes keys a day after they expire. Until then they count: otherwise the rows of
// an owner who creates keys with short lives would have no bound.
const countKept = statement({ total: integer })`select count(*)::int as total from api_keys
  where ${owned} and (expires_at is null or expires_at > ${p.at}::timestamptz - interval '1 day')`;

// A key is rotated once: the next rotation is that of its successor.
const rotate = statement({})`
  with old as (
    update api_keys k set expires_at = least(k.expires_at, ${p.validUntil}), updated_at = ${p.at}
    where k.id = ${p.id} and k.updated_at = ${p.version}
      and not exists (select from api_keys later where later.rotated_from = k.id)
    returning k.id
  ), created as (
    insert into api_keys (${columns}, digest) select g.*, ${p.digest} from (${given}) g where exists (select from old)
    returning id
  ), audit as (${auditInsert('created')})
  select id from created`;

// Other replicas may have recorded a use meanwhile. They lock the same rows, in an order that the
// plan determines: rows are skipped whose lock another transaction has.
const recordUse = statement({})`
  with used as (
    select k.id, i.at from api_keys k join ${batchedInput<Use>({
      id: column(uuid, ({ id }) => id),
      at: column(timestamptz, (use) => use.at),
    })} on k.id = i.id
    where k.last_used_at is null or k.last_used_at <= i.at - interval '1 minute'
    for no key update of k skip locked
  )
  update api_keys k set last_used_at = used.at from used where k.id = used.id`;

const importedRow = { id: uuid, is_new: boolean, has_owner: boolean };

export type ImportedKeyRow = RowOf<typeof importedRow>;

const importKeys = statement(importedRow)`
  with input as materialized (
    select k.*, (k.user_id is null or exists (select from users u where u.id = k.user_id and u.deleted_at is null))
        and (k.org_id is null or exists (select from organizations o where o.id = k.org_id)) as has_owner
    from jsonb_populate_recordset(null::api_keys, ${p.keys}::jsonb) k
  ), created as (
    insert into api_keys (${columns}, digest) select ${columns}, digest from input where ${p.isStored}::boolean and has_owner
    on conflict (digest) do nothing returning id
  ), audit as (${auditInsert('created')})
  select i.id, i.has_owner,
    case when ${p.isStored}::boolean then c.id is not null else not exists (select from api_keys k where k.digest = i.digest) end as is_new
  from input i left join created c using (id)`;

const remove = statement({})`
  with deleted as (delete from api_keys where id = ${p.id} returning id), audit as (${auditInsert('deleted')})
  select id from deleted`;

/** Which keys to list. An absent member does not restrict the list. */
export interface KeyFilter {
  readonly userId?: string;
  readonly orgId?: string;
  readonly plan?: string;
  readonly prefix?: string;
  readonly last4?: string;
}

function matching({ userId, orgId, plan, prefix, last4 }: KeyFilter): Fragment<unknown> {
  const parts = [
    ...(userId === undefined ? [] : [fragment`k.user_id = ${bind(uuid, userId)}`]),
    ...(orgId === undefined ? [] : [fragment`k.org_id = ${bind(uuid, orgId)}`]),
    ...(plan === undefined ? [] : [fragment`k.plan = ${bind(text, plan)}`]),
    ...(prefix === undefined ? [] : [fragment`k.prefix = ${bind(text, prefix)}`]),
    ...(last4 === undefined ? [] : [fragment`k.last4 = ${bind(text, last4)}`]),
  ];
  return parts.length === 0 ? raw('true') : join(parts, ' and ');
}

const listedRow = { ...keyRow, position: text.orNull };

const keyListing: Listing<KeyFilter, typeof listedRow> = {
  table: 'api_keys',
  alias: 'k',
  columns: columnNames(keyRow, 'k'),
  row: listedRow,
  condition: matching,
  count: (filter) => fragment`(select count(*) from api_keys k where ${matching(filter)})`,
  alternative: () => undefined,
};

/** The table of API keys. */
export class ApiKeyStore {
  readonly #sql: Queryable;
  readonly #lister: Lister<KeyFilter, typeof listedRow>;
  readonly #onChange: ((keyId: string) => void) | undefined;

  /** @param onChange called with the id of a key that changed */
  constructor(sql: Queryable, onChange?: (keyId: string) => void) {
    this.#sql = sql;
    this.#lister = new Lister(sql, keyListing);
    this.#onChange = onChange;
  }

  async find(id: string): Promise<ApiKey | undefined> {
    return find.first(this.#sql, { id });
  }

  /** Newest first. `next` is undefined for the last page. */
  async listAfter(
    filter: KeyFilter,
    page: Omit<CursorPage, 'order'>,
  ): Promise<{ readonly items: readonly ApiKey[]; readonly next: Position | undefined }> {
    return this.#lister.listAfter(filter, { ...page, order: 'desc' });
  }

  /** Returns false if the user or organization that is to own it does not exist. */
  async insert(key: ApiKey, digest: string, audit: AuditEntry): Promise<boolean> {
    return (
      (await insert.first(this.#sql, { key, digest, userId: key.user_id, orgId: key.org_id, audit }))
        ?.has_owner === true
    );
  }

  /**
   * Returns false if the row has changed since `version`, its `updated_at`, or does not exist any
   * more.
   */
  async update(key: ApiKey, version: Date, audit: AuditEntry): Promise<boolean> {
    const isUpdated = await update.matches(this.#sql, { key, id: key.id, version, audit });
    this.#onChange?.(key.id);
    return isUpdated;
  }

  /** Inserts keys whose digest is new, and returns the outcome of each; none with `isDryRun`. */
  async import(
    keys: readonly (ApiKey & { readonly digest: string })[],
    { isDryRun, audit }: { readonly isDryRun: boolean; readonly audit: AuditEntry },
  ): Promise<readonly ImportedKeyRow[]> {
    const rows = await importKeys.run(this.#sql, { keys, isStored: !isDryRun, audit });
    const byId = new Map(rows.map((row) => [row.id, row]));
    return keys.flatMap(({ id }) => byId.get(id) ?? []);
  }

  /** Sets the last use of keys, unless it is less than a minute newer than the stored one. */
  async recordUse(uses: readonly Use[]): Promise<void> {
    await recordUse.run(this.#sql, { items: uses });
  }

  /** All keys of a user or an organization, newest first. Self-service bounds their number. */
  async listOwned(ownerId: string): Promise<readonly ApiKey[]> {
    return listOwned.run(this.#sql, { ownerId });
  }

  /** Locks the user, so that concurrent requests for keys are counted one after the other. */
  async lockUser(userId: string): Promise<void> {
    await lock.run(this.#sql, { ownerId: userId });
  }

  /** Counts keys of a user or an organization, without keys that expired more than a day ago. */
  async countKept(ownerId: string, at: Date): Promise<number> {
    return (await countKept.first(this.#sql, { ownerId, at }))?.total ?? 0;
  }

  /**
   * Adds the successor of a key, which is valid until a time. Returns false if the key has a
   * successor, has changed since `version`, its `updated_at`, or does not exist any more.
   */
  async rotate(
    successor: { readonly key: ApiKey; readonly digest: string },
    old: { readonly id: string; readonly version: Date; readonly validUntil: Date },
    audit: AuditEntry,
  ): Promise<boolean> {
    const { created_at: at } = successor.key;
    const isRotated = await rotate.matches(this.#sql, { ...successor, ...old, at, audit });
    this.#onChange?.(old.id);
    return isRotated;
  }

  /** Returns false if there is no such key. */
  async delete(id: string, audit: AuditEntry): Promise<boolean> {
    const isDeleted = await remove.matches(this.#sql, { id, audit });
    this.#onChange?.(id);
    return isDeleted;
  }
}
