import type { JsonObject } from '@tollgate/kit/json';
import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import type { Queryable } from '../db/connection.ts';
import type { Page, PageRequest } from '../db/paging.ts';
import { noOAuthServer } from '../db/schema.ts';
import { boolean, integer, jsonOf, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { columnNames, fragment, parameters, raw, statement } from '../db/statement.ts';
import type { ClientMetadata } from './client-metadata.ts';

export const authMethods = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'] as const;
export type AuthMethod = (typeof authMethods)[number];

/** Columns of GoTrue's table. Lists are separated by commas. */
const clientRow = {
  id: uuid,
  /** Base64url of the SHA-256 digest of the secret. Empty or null without a secret. */
  client_secret_hash: text.orNull,
  registration_type: text.as<'dynamic' | 'manual'>(),
  client_type: text.as<'public' | 'confidential'>(),
  redirect_uris: text,
  grant_types: text,
  client_name: text.orNull,
  client_uri: text.orNull,
  logo_uri: text.orNull,
  token_endpoint_auth_method: text.as<AuthMethod>(),
  created_at: timestamptz,
  updated_at: timestamptz,
};

/** Columns of our table. Absent for clients that GoTrue created. */
const settingsRow = {
  jwks: jsonOf<JsonObject>().orNull,
  jwks_uri: text.orNull,
  scopes: text.list,
  audiences: text.list,
  plan: text.orNull,
  role: text.orNull,
  rate_limit: jsonOf<JsonObject>().orNull,
  org_id: uuid.orNull,
  disabled: boolean,
  /** Its `client_id`, which is the URL of its metadata. Null for other clients. */
  document_url: text.orNull,
  /** The document has to be fetched again then. */
  document_expires_at: timestamptz.orNull,
  metadata: jsonOf<ClientMetadata>(),
};

const storedRow = { ...clientRow, ...settingsRow, version: text };

type StoredRow = RowOf<typeof storedRow>;

/** A client of the OAuth server. */
export type OAuthClient = Omit<
  StoredRow,
  'client_secret_hash' | 'redirect_uris' | 'grant_types' | 'version'
> & {
  /** Empty without a secret. */
  readonly client_secret_hash: string;
  readonly redirect_uris: readonly string[];
  readonly grant_types: readonly string[];
};

/** Changes with each update, whichever server makes it. */
export type StoredClient = OAuthClient & { readonly version: string };

/** Columns of `oauth_clients` and of `oauth_client_settings`, as JSON. */
interface WrittenClient {
  readonly client: object;
  readonly settings: object;
}

const p = {
  ...parameters(jsonOf<object>(), 'client', 'settings'),
  ...parameters(uuid, 'id'),
  ...parameters(text, 'version', 'secretHash'),
  ...parameters(timestamptz, 'at'),
  ...parameters(timestamptz.orNull, 'expiresAt'),
  ...parameters(integer, 'limit', 'offset'),
};

const ownColumns = raw(
  ['client_id', 'token_endpoint_auth_method', ...Object.keys(settingsRow), 'updated_at'].join(', '),
);
const writtenSettings = fragment`select ${ownColumns} from jsonb_populate_record(null::oauth_client_settings, ${p.settings}::jsonb)`;

const selectClient = fragment`
  select c.id, c.client_secret_hash, c.registration_type, c.client_type, c.redirect_uris, c.grant_types, c.client_name,
    c.client_uri, c.logo_uri, c.created_at, c.updated_at, c.xmin::text as version,
    coalesce(s.token_endpoint_auth_method, c.token_endpoint_auth_method) as token_endpoint_auth_method,
    s.jwks, s.jwks_uri, coalesce(s.scopes, '{}') as scopes, coalesce(s.audiences, '{}') as audiences, s.plan, s.role,
    s.rate_limit, s.org_id, coalesce(s.disabled, false) as disabled, s.document_url, s.document_expires_at,
    coalesce(s.metadata, '{}') as metadata
  from oauth_clients c left join oauth_client_settings s on s.client_id = c.id`;

const find = statement(storedRow)`${selectClient} where c.id = ${p.id} and c.deleted_at is null`;

const list = statement({ total: integer }, storedRow)`
  select t.total, p.* from (select count(*)::int as total from oauth_clients where deleted_at is null) t
  left join lateral (
    ${selectClient} where c.deleted_at is null order by c.created_at desc, c.id limit ${p.limit} offset ${p.offset}
  ) p on true
  order by p.created_at desc, p.id`;

const columns = columnNames(clientRow);

const isCurrent = statement({ is_current: boolean })`
  select count(*) = 2 as is_current from pg_attribute
  where (attrelid, attname) in ((to_regclass('oauth_clients'), 'token_endpoint_auth_method'), (to_regclass('sessions'), 'scopes'))
    and not attisdropped`;

const insert = statement({})`
  with created as (
    insert into oauth_clients (${columns})
    select ${columns} from jsonb_populate_record(null::oauth_clients, ${p.client}::jsonb)
    on conflict (id) do nothing returning id
  ), own as (
    insert into oauth_client_settings (${ownColumns}) select w.* from (${writtenSettings}) w, created
  ), audit as (${auditInsert('created')})
  select id from created`;

/** Ends the requests of the clients in another part of the `with` clause. Waits for exchanges. */
function withdrawRequests(part: string) {
  return fragment`withdrawn as (
    delete from oauth_authorizations where client_id in (select id from ${raw(part)})
  )`;
}

const update = statement({})`
  with updated as (
    update oauth_clients set (${columns}) =
      (select ${columns} from jsonb_populate_record(null::oauth_clients, ${p.client}::jsonb))
    where id = ${p.id} and xmin::text = ${p.version} and deleted_at is null returning id
  ), own as (
    insert into oauth_client_settings (${ownColumns}) select w.* from (${writtenSettings}) w, updated
    on conflict (client_id) do update set (${ownColumns}) = (${writtenSettings})
  ), stopped as (
    select id from updated where (select w.disabled from (${writtenSettings}) w)
  ), ${withdrawRequests('stopped')}, audit as (${auditInsert('updated')})
  select id from updated`;

const touchDocument = statement({})`
  update oauth_client_settings set document_expires_at = ${p.expiresAt} where client_id = ${p.id}`;

/** Notifies replicas of a change in GoTrue's table. */
const touchSettings = fragment`insert into oauth_client_settings (client_id, updated_at) select id, ${p.at} from changed
  on conflict (client_id) do update set updated_at = excluded.updated_at`;

const restore = statement({})`
  update oauth_clients set deleted_at = null where id = ${p.id} and deleted_at is not null`;

const replaceSecret = statement({})`
  with changed as (
    update oauth_clients set client_secret_hash = ${p.secretHash}, updated_at = ${p.at}
    where id = ${p.id} and deleted_at is null and client_type = 'confidential' returning id
  ), own as (${touchSettings}), audit as (${auditInsert('changed')})
  select id from changed`;

const deleteClient = statement({})`
  with changed as (
    update oauth_clients set deleted_at = ${p.at}, updated_at = ${p.at}
    where id = ${p.id} and deleted_at is null returning id
  ), own as (${touchSettings}), ${withdrawRequests('changed')}, audit as (${auditInsert('changed')})
  select id from changed`;

const endSessions = statement({})`delete from sessions where oauth_client_id = ${p.id}`;

/** The tables of clients of the OAuth server. */
export class OAuthClientStore {
  readonly #sql: Queryable;
  readonly #onChange: ((clientId: string) => void) | undefined;

  constructor(sql: Queryable, onChange?: (clientId: string) => void) {
    this.#sql = sql;
    this.#onChange = onChange;
  }

  /** @throws Error if an earlier version of GoTrue made the schema: its tables are not changed. */
  async requireTables(): Promise<void> {
    if ((await isCurrent.first(this.#sql, {}))?.is_current === true) return;
    throw new Error(noOAuthServer);
  }

  async find(id: string): Promise<StoredClient | undefined> {
    const row = await find.first(this.#sql, { id });
    return row && toClient(row);
  }

  /** Newest first. */
  async list(page: PageRequest): Promise<Page<OAuthClient>> {
    const rows = await list.run(this.#sql, page);
    return {
      total: rows[0]?.total ?? 0,
      items: rows.flatMap((row) => (row.id === null ? [] : toClient(row))),
    };
  }

  /** A client with the same id stays, also one that was deleted. */
  async insert(client: OAuthClient, audit: AuditEntry): Promise<void> {
    await insert.run(this.#sql, { ...toRows(client), audit });
  }

  /** Returns false if the client has changed, or does not exist any more. */
  async update({ version, ...client }: StoredClient, audit: AuditEntry): Promise<boolean> {
    const { id } = client;
    return this.#notify(id, await update.matches(this.#sql, { ...toRows(client), id, version, audit }));
  }

  /** Sets the time until which the stored document of a client is used. */
  async touchDocument(id: string, expiresAt: Date | null): Promise<void> {
    await touchDocument.run(this.#sql, { id, expiresAt });
  }

  /** Undoes a deletion. */
  async restore(id: string): Promise<void> {
    await restore.run(this.#sql, { id });
  }

  /** Returns false if there is no such confidential client. */
  async replaceSecret(
    id: string,
    change: { readonly secretHash: string; readonly at: Date; readonly audit: AuditEntry },
  ): Promise<boolean> {
    return this.#notify(id, await replaceSecret.matches(this.#sql, { id, ...change }));
  }

  /** The row stays. Returns false if there is no such client. */
  async delete(id: string, change: { readonly at: Date; readonly audit: AuditEntry }): Promise<boolean> {
    return this.#notify(id, await deleteClient.matches(this.#sql, { id, ...change }));
  }

  /** Follows a change that ends access, which may have waited for an exchange with a session. */
  async endSessions(id: string): Promise<void> {
    await endSessions.run(this.#sql, { id });
  }

  #notify(id: string, isChanged: boolean): boolean {
    if (isChanged) this.#onChange?.(id);
    return isChanged;
  }
}

function toClient(row: StoredRow): StoredClient {
  return {
    ...row,
    client_secret_hash: row.client_secret_hash ?? '',
    redirect_uris: splitList(row.redirect_uris),
    grant_types: splitList(row.grant_types),
  };
}

function splitList(text: string): readonly string[] {
  return text === '' ? [] : text.split(',');
}

function toRows(client: OAuthClient): WrittenClient {
  const { id: client_id, token_endpoint_auth_method: method, updated_at } = client;
  const [own, shared] = [pick(client, settingsRow), pick(client, clientRow)];
  const isOwnMethod = method === 'private_key_jwt';
  return {
    client: {
      ...shared,
      redirect_uris: client.redirect_uris.join(','),
      grant_types: client.grant_types.join(','),
      // GoTrue has no such method, and accepts no secret for an empty digest.
      token_endpoint_auth_method: isOwnMethod ? 'client_secret_basic' : method,
    },
    settings: { client_id, token_endpoint_auth_method: isOwnMethod ? method : null, ...own, updated_at },
  };
}

function pick(client: OAuthClient, columns: object): object {
  return Object.fromEntries(Object.entries(client).filter(([name]) => Object.hasOwn(columns, name)));
}
