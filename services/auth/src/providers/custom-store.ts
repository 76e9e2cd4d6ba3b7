import type { JsonObject } from '@tollgate/kit/json';
import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import type { Queryable } from '../db/connection.ts';
import { boolean, integer, jsonOf, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { columnNames, fragment, parameters, statement } from '../db/statement.ts';
import { type CustomProvider, customPrefix, toTextRecord } from '../identity-providers/custom.ts';
import type { ColumnCipher } from '../keys/secrets.ts';

/** Columns of GoTrue's table, which are the members of its admin API. */
const providerRow = {
  id: uuid,
  provider_type: text.as<'oauth2' | 'oidc'>(),
  /** Starts with `custom:`. */
  identifier: text,
  name: text,
  client_id: text,
  /** Not encrypted in a {@link StoredProvider}. */
  client_secret: text,
  acceptable_client_ids: text.list,
  scopes: text.list,
  pkce_enabled: boolean,
  attribute_mapping: jsonOf<JsonObject>(),
  custom_claims_allowlist: text.list,
  authorization_params: jsonOf<JsonObject>(),
  enabled: boolean,
  email_optional: boolean,
  issuer: text.orNull,
  discovery_url: text.orNull,
  skip_nonce_check: boolean,
  cached_discovery: jsonOf<JsonObject>().orNull,
  discovery_cached_at: timestamptz.orNull,
  authorization_url: text.orNull,
  token_url: text.orNull,
  userinfo_url: text.orNull,
  jwks_uri: text.orNull,
  created_at: timestamptz,
  updated_at: timestamptz,
};
const versionRow = { ...providerRow, version: text };

export type StoredProvider = RowOf<typeof providerRow>;

/** Changes with each update of the row, whichever server makes it. */
export type StoredVersion = RowOf<typeof versionRow>;

const p = {
  ...parameters(jsonOf<StoredProvider>(), 'provider'),
  ...parameters(text, 'identifier', 'version'),
  ...parameters(text.orNull, 'type'),
  ...parameters(integer, 'maxProviders'),
};

const columns = columnNames(providerRow);
const given = fragment`select ${columns} from jsonb_populate_record(null::custom_oauth_providers, ${p.provider}::jsonb)`;

const find = statement(versionRow)`
  select ${columns}, xmin::text as version from custom_oauth_providers where identifier = ${p.identifier}`;

const list = statement(versionRow)`select ${columns}, xmin::text as version from custom_oauth_providers
  where ${p.type}::text is null or provider_type = ${p.type} order by created_at, identifier`;

const listEnabled = statement({ identifier: text, name: text })`
  select identifier, name from custom_oauth_providers where enabled order by created_at, identifier`;

const insert = statement({ taken: boolean, is_full: boolean, is_created: boolean })`
  with others as (
    select count(*)::int as total, coalesce(bool_or(identifier = ${p.identifier}), false) as taken from custom_oauth_providers
  ), created as (
    insert into custom_oauth_providers (${columns})
    select g.* from (${given}) g, others where not taken and (${p.maxProviders} = 0 or total < ${p.maxProviders})
    on conflict do nothing returning id
  ), audit as (${auditInsert('created')})
  select taken, ${p.maxProviders} > 0 and total >= ${p.maxProviders} as is_full, exists (select from created) as is_created from others`;

const update = statement({})`
  with updated as (
    update custom_oauth_providers set (${columns}) = (${given}) where identifier = ${p.identifier}
      and xmin::text = ${p.version} returning id
  ), audit as (${auditInsert('updated')})
  select id from updated`;

const deleteProvider = statement({})`
  with deleted as (delete from custom_oauth_providers where identifier = ${p.identifier} returning id),
    audit as (${auditInsert('deleted')})
  select id from deleted`;

/** The table of identity providers that administrators add. Secrets are encrypted. */
export class CustomProviderStore {
  readonly #sql: Queryable;
  readonly #cipher: ColumnCipher;

  constructor(sql: Queryable, cipher: ColumnCipher) {
    this.#sql = sql;
    this.#cipher = cipher;
  }

  async find(identifier: string): Promise<StoredVersion | undefined> {
    const row = await find.first(this.#sql, { identifier });
    return row && this.#read(row);
  }

  /** Identifiers, and names for users. */
  async listEnabled(): Promise<readonly { readonly identifier: string; readonly name: string }[]> {
    return listEnabled.run(this.#sql, {});
  }

  /** Oldest first; of all types without one. */
  async list(type: string | undefined): Promise<readonly StoredProvider[]> {
    return (await list.run(this.#sql, { type })).map((row) => this.#read(row));
  }

  /** @param maxProviders 0 for any number */
  async insert(
    provider: StoredProvider,
    options: { readonly maxProviders: number; readonly audit: AuditEntry },
  ): Promise<'created' | 'taken' | 'full'> {
    const { identifier } = provider;
    const row = await insert.first(this.#sql, { provider: this.#write(provider), identifier, ...options });
    if (row?.is_created === true) return 'created';
    return row?.is_full === true && row.taken !== true ? 'full' : 'taken';
  }

  /** Returns false if the row has changed, or does not exist any more. */
  async update({ version, ...provider }: StoredVersion, audit: AuditEntry): Promise<boolean> {
    const { identifier } = provider;
    return update.matches(this.#sql, { provider: this.#write(provider), identifier, version, audit });
  }

  async delete(identifier: string, audit: AuditEntry): Promise<boolean> {
    return deleteProvider.matches(this.#sql, { identifier, audit });
  }

  #read(provider: StoredVersion): StoredVersion {
    return { ...provider, client_secret: this.#cipher.decrypt(provider.id, provider.client_secret) };
  }

  #write(provider: StoredProvider) {
    return { ...provider, client_secret: this.#cipher.encrypt(provider.id, provider.client_secret) };
  }
}

/** A provider that administrators have added. */
export function fromStored(stored: StoredProvider): CustomProvider {
  return {
    name: stored.identifier.slice(customPrefix.length),
    clientIds: [stored.client_id, ...stored.acceptable_client_ids],
    clientSecret: stored.client_secret,
    scopes: stored.scopes,
    pkce: stored.pkce_enabled,
    emailOptional: stored.email_optional,
    skipNonceCheck: stored.skip_nonce_check,
    attributeMapping: stored.attribute_mapping,
    claimsAllowlist: stored.custom_claims_allowlist,
    authorizationParameters: toTextRecord(stored.authorization_params),
    issuer: stored.issuer ?? '',
    discoveryUrl: stored.discovery_url ?? '',
    authorizationUrl: stored.authorization_url ?? '',
    tokenUrl: stored.token_url ?? '',
    userinfoUrl: stored.userinfo_url ?? '',
  };
}
