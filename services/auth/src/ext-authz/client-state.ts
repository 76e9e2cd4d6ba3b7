import type { JsonObject } from '@tollgate/kit/json';
import type { Queryable } from '../db/connection.ts';
import { batchedInput, column } from '../db/fragments.ts';
import { boolean, jsonOf, text, uuid } from '../db/sql-types.ts';
import { type StatementRow, statement } from '../db/statement.ts';
import { type ClientCredentials, credentialVersion } from '../keys/client-tokens.ts';

/** Data of a client that may have changed since an access token was issued. */
export interface ClientState {
  /** Tokens that the client gets now have it. */
  readonly version: string;
  readonly disabled: boolean;
  readonly grantTypes: readonly string[];
  readonly scopes: readonly string[];
  readonly plan: string | undefined;
  readonly role: string;
  readonly orgId: string | undefined;
  /** `{ requests_per_unit, unit }`. */
  readonly limit: JsonObject | undefined;
  /** Undefined also if `orgId` names none. */
  readonly organization:
    | { readonly plan: string | undefined; readonly limit: JsonObject | undefined }
    | undefined;
}

const clientState = {
  client_secret_hash: text.orNull,
  grant_types: text,
  token_endpoint_auth_method: text,
  jwks: jsonOf<JsonObject>().orNull,
  jwks_uri: text.orNull,
  metadata: jsonOf<ClientCredentials['metadata']>(),
  scopes: text.list,
  plan: text.orNull,
  role: text.orNull,
  rate_limit: jsonOf<JsonObject>().orNull,
  org_id: uuid.orNull,
  disabled: boolean,
};
const organizationState = {
  found_org_id: uuid,
  org_plan: text.orNull,
  org_limit: jsonOf<JsonObject>().orNull,
};

interface ClientKey {
  /** A UUID in lower case. */
  readonly userId: string;
}

// See `batchedInput` for `offset 0`.
const findStates = statement({}, clientState, organizationState)`
  select c.*, o.id as found_org_id, o.plan as org_plan, o.rate_limit as org_limit from ${batchedInput<ClientKey>({ client_id: column(uuid, ({ userId }) => userId) })}
  left join lateral (
    select c.client_secret_hash, c.grant_types,
      coalesce(s.token_endpoint_auth_method, c.token_endpoint_auth_method) as token_endpoint_auth_method,
      s.jwks, s.jwks_uri, coalesce(s.metadata, '{}') as metadata, coalesce(s.scopes, '{}') as scopes, s.plan, s.role, s.rate_limit, s.org_id,
      coalesce(s.disabled, false) as disabled
    from oauth_clients c left join oauth_client_settings s on s.client_id = c.id
    where c.id = i.client_id and c.deleted_at is null offset 0
  ) c on true
  left join organizations o on o.id = c.org_id
  order by i.position`;

export class ClientStateStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** Reads states in the order of the keys with one statement. Undefined: no such client. */
  async findMany(keys: readonly ClientKey[]): Promise<readonly (ClientState | undefined)[]> {
    return (await findStates.run(this.#sql, { items: keys })).map(toState);
  }
}

function toState(row: StatementRow<typeof findStates>): ClientState | undefined {
  if (row.token_endpoint_auth_method === null) return undefined;
  return {
    version: credentialVersion(row),
    disabled: row.disabled,
    grantTypes: row.grant_types.split(','),
    scopes: row.scopes,
    plan: row.plan ?? undefined,
    role: row.role ?? '',
    orgId: row.org_id ?? undefined,
    limit: row.rate_limit ?? undefined,
    organization:
      row.found_org_id === null
        ? undefined
        : { plan: row.org_plan ?? undefined, limit: row.org_limit ?? undefined },
  };
}
