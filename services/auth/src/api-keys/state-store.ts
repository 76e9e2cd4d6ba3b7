import type { Json, JsonObject } from '@tollgate/kit/json';
import { type LimitOverride, parseLimitOverride } from '@tollgate/policies/decide/limit-override';
import { type Queryable, toObject } from '../db/connection.ts';
import { batchedInput, column } from '../db/fragments.ts';
import { boolean, json, jsonOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { parameters, type StatementRow, statement } from '../db/statement.ts';
import { compileNetworks, type Networks } from './networks.ts';

// See `batchedInput` for `offset 0`.
const keyState = {
  id: uuid,
  user_id: uuid.orNull,
  org_id: uuid.orNull,
  scopes: text.list,
  admin_scopes: text.list,
  key_role: text.orNull,
  plan: text.orNull,
  rate_limit: json.orNull,
  expires_at: timestamptz.orNull,
  allowed_networks: text.list,
  metadata: jsonOf<JsonObject>(),
  disabled: boolean,
};
const userState = {
  user_role: text.orNull,
  raw_app_meta_data: json.orNull,
  is_anonymous: boolean,
  banned_until: timestamptz.orNull,
};

const organizationState = { has_organization: boolean, org_plan: text.orNull, org_limit: json.orNull };

const findStates = statement({}, keyState, userState, organizationState)`
  select k.id, k.user_id, k.org_id, k.scopes, k.admin_scopes, k.role as key_role, k.plan, k.rate_limit, k.expires_at,
    k.allowed_networks, k.metadata, k.disabled,
    u.role as user_role, u.raw_app_meta_data, u.is_anonymous, u.banned_until, o.has_organization, o.org_plan, o.org_limit
  from ${batchedInput<string>({ digest: column(text, (digest) => digest) })}
  left join lateral (select * from api_keys where digest = i.digest offset 0) k on true
  left join lateral (
    select role, raw_app_meta_data, is_anonymous, banned_until from users
    where id = k.user_id and deleted_at is null offset 0
  ) u on true
  left join lateral (
    select true as has_organization, plan as org_plan, rate_limit as org_limit from organizations where id = k.org_id offset 0
  ) o on true
  order by i.position`;

const p = parameters(uuid, 'id');
const findDigest = statement({ digest: text })`select digest from api_keys where id = ${p.id}`;

/** Reads what the cache of API keys has. */
export class ApiKeyStateStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** The digest of a key by its id. */
  async findDigest(id: string): Promise<string | undefined> {
    return (await findDigest.first(this.#sql, { id }))?.digest;
  }

  /** Reads states in the order of the digests with one statement. Undefined: no such key. */
  async findMany(digests: readonly string[]): Promise<readonly (ApiKeyState | undefined)[]> {
    return (await findStates.run(this.#sql, { items: digests })).map(toState);
  }
}

function toState(r: StatementRow<typeof findStates>): ApiKeyState | undefined {
  if (r.id === null) return undefined;
  return {
    id: r.id,
    userId: r.user_id ?? undefined,
    orgId: r.org_id ?? undefined,
    scopes: r.scopes,
    adminScopes: r.admin_scopes,
    role: r.key_role ?? undefined,
    plan: r.plan ?? undefined,
    limit: readLimit(r.rate_limit),
    expiresAtMs: r.expires_at?.getTime(),
    networks: compileNetworks(r.allowed_networks),
    metadata: r.metadata,
    disabled: r.disabled,
    user:
      r.is_anonymous === null
        ? undefined
        : {
            role: r.user_role ?? '',
            appMetadata: toObject(r.raw_app_meta_data),
            isAnonymous: r.is_anonymous,
            bannedUntil: r.banned_until ?? undefined,
            organization: undefined,
          },
    organization:
      r.has_organization === null
        ? undefined
        : { plan: r.org_plan ?? undefined, limit: readLimit(r.org_limit) },
  };
}

/** Writes are validated: an invalid limit is of another program. */
function readLimit(stored: Json): LimitOverride | undefined {
  const parsed = parseLimitOverride(stored);
  return parsed.ok ? parsed.limit : undefined;
}

/** The state of a key and its owner, which decides on requests with the key. */
export interface ApiKeyState {
  readonly id: string;
  readonly userId: string | undefined;
  readonly orgId: string | undefined;
  readonly scopes: readonly string[];
  readonly adminScopes: readonly string[];
  readonly role: string | undefined;
  readonly plan: string | undefined;
  readonly limit: LimitOverride | undefined;
  /** Unix time in milliseconds. */
  readonly expiresAtMs: number | undefined;
  /** Undefined: any address. */
  readonly networks: Networks | undefined;
  readonly metadata: JsonObject;
  readonly disabled: boolean;
  /** The user who owns the key. Undefined for other owners, and for a deleted user. */
  readonly user: KeyUser | undefined;
  /** The organization that owns the key. */
  readonly organization: KeyOrganization | undefined;
}

/** State of the user, with the members of the identity cache. */
interface KeyUser {
  readonly role: string;
  readonly appMetadata: JsonObject;
  readonly isAnonymous: boolean;
  readonly bannedUntil: Date | undefined;
  /** A user's key does not act for an organization. */
  readonly organization: undefined;
}

/** The plan and the limit that an organization shares with its keys. */
interface KeyOrganization {
  readonly plan: string | undefined;
  readonly limit: LimitOverride | undefined;
}
