import type { JsonObject } from '@tollgate/kit/json';
import { type AuditEntry, auditInsert, auditParameters } from '../audit/audit-log.ts';
import { type Queryable, query, type Row } from '../db/connection.ts';
import { type CustomProvider, customPrefix, toTextRecord } from '../identity-providers/custom.ts';
import type { ColumnCipher } from '../keys/secrets.ts';

/** A row of GoTrue's table, whose columns are the members of its admin API. */
export interface StoredProvider {
  readonly id: string;
  readonly provider_type: 'oauth2' | 'oidc';
  /** Starts with `custom:`. */
  readonly identifier: string;
  readonly name: string;
  readonly client_id: string;
  /** Not encrypted. */
  readonly client_secret: string;
  readonly acceptable_client_ids: readonly string[];
  readonly scopes: readonly string[];
  readonly pkce_enabled: boolean;
  readonly attribute_mapping: JsonObject;
  readonly custom_claims_allowlist: readonly string[];
  readonly authorization_params: JsonObject;
  readonly enabled: boolean;
  readonly email_optional: boolean;
  readonly issuer: string | null;
  readonly discovery_url: string | null;
  readonly skip_nonce_check: boolean;
  readonly cached_discovery: JsonObject | null;
  readonly discovery_cached_at: Date | null;
  readonly authorization_url: string | null;
  readonly token_url: string | null;
  readonly userinfo_url: string | null;
  readonly jwks_uri: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** Changes with each update of the row, whichever server makes it. */
export type StoredVersion = StoredProvider & { readonly version: string };

const columns = `id, provider_type, identifier, name, client_id, client_secret, acceptable_client_ids, scopes, pkce_enabled,
  attribute_mapping, custom_claims_allowlist, authorization_params, enabled, email_optional, issuer, discovery_url,
  skip_nonce_check, cached_discovery, discovery_cached_at, authorization_url, token_url, userinfo_url, jwks_uri, created_at,
  updated_at`;
const given = `select ${columns} from jsonb_populate_record(null::custom_oauth_providers, $1::jsonb)`;

const findSql = `select ${columns}, xmin::text as version from custom_oauth_providers where identifier = $1`;

const listSql = `select ${columns}, xmin::text as version from custom_oauth_providers
  where $1::text is null or provider_type = $1 order by created_at, identifier`;

const insertSql = `
  with others as (
    select count(*)::int as total, coalesce(bool_or(identifier = $2), false) as taken from custom_oauth_providers
  ), created as (
    insert into custom_oauth_providers (${columns})
    select g.* from (${given}) g, others where not taken and ($3 = 0 or total < $3)
    on conflict do nothing returning id
  ), audit as (${auditInsert(4, 'created')})
  select taken, $3 > 0 and total >= $3 as is_full, exists (select from created) as is_created from others`;

const updateSql = `
  with updated as (
    update custom_oauth_providers set (${columns}) = (${given}) where identifier = $2 and xmin::text = $3 returning id
  ), audit as (${auditInsert(4, 'updated')})
  select id from updated`;

const deleteSql = `
  with deleted as (delete from custom_oauth_providers where identifier = $1 returning id),
    audit as (${auditInsert(2, 'deleted')})
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
    const [row] = await query(this.#sql, findSql, [identifier]);
    return row && this.#read(row);
  }

  /** Oldest first; of all types without one. */
  async list(type: string | undefined): Promise<readonly StoredProvider[]> {
    return (await query(this.#sql, listSql, [type ?? null])).map((row) => this.#read(row));
  }

  /** @param maxProviders 0 for any number */
  async insert(
    provider: StoredProvider,
    { maxProviders, audit }: { readonly maxProviders: number; readonly audit: AuditEntry },
  ): Promise<'created' | 'taken' | 'full'> {
    const parameters = [this.#write(provider), provider.identifier, maxProviders, ...auditParameters(audit)];
    const [row] = await query(this.#sql, insertSql, parameters);
    if (row?.is_created === true) return 'created';
    return row?.is_full === true && row.taken !== true ? 'full' : 'taken';
  }

  /** Returns false if the row has changed, or does not exist any more. */
  async update({ version, ...provider }: StoredVersion, audit: AuditEntry): Promise<boolean> {
    const parameters = [this.#write(provider), provider.identifier, version, ...auditParameters(audit)];
    return (await query(this.#sql, updateSql, parameters)).length > 0;
  }

  async delete(identifier: string, audit: AuditEntry): Promise<boolean> {
    return (await query(this.#sql, deleteSql, [identifier, ...auditParameters(audit)])).length > 0;
  }

  #read(row: Row): StoredVersion {
    // Parsed boundary: these are the columns selected above, with the types of the schema.
    const provider = row as unknown as StoredVersion;
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
