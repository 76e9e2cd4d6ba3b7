import type { JsonObject } from '@tollgate/kit/json';
import type { RowOf } from '../db/sql-types.ts';
import { boolean, jsonOf, text, timestamptz, uuid } from '../db/sql-types.ts';

/** The limit of a single caller, as in `app_metadata.limit`. */
export interface KeyLimit {
  readonly requests_per_unit: number;
  /** In lower case: `second`, `minute`, … */
  readonly unit: string;
}

/** Columns of `api_keys` without the digest. */
export const keyRow = {
  id: uuid,
  name: text,
  prefix: text,
  last4: text,
  user_id: uuid.orNull,
  org_id: uuid.orNull,
  scopes: text.list,
  admin_scopes: text.list,
  role: text.orNull,
  plan: text.orNull,
  rate_limit: jsonOf<KeyLimit>().orNull,
  expires_at: timestamptz.orNull,
  allowed_networks: text.list,
  metadata: jsonOf<JsonObject>(),
  disabled: boolean,
  created_at: timestamptz,
  updated_at: timestamptz,
  last_used_at: timestamptz.orNull,
  rotated_from: uuid.orNull,
  created_by: text,
  /** Whether a member of the organization that owns it issued it. */
  by_member: boolean,
};

/** An API key. The key itself is not stored. */
export type ApiKey = RowOf<typeof keyRow>;

/** A user or an organization that owns a key. */
export type OwnerWithKeys =
  | { readonly userId: string; readonly orgId?: undefined }
  | { readonly userId?: undefined; readonly orgId: string };

/** The owner of a key. Neither id: a machine. */
export type KeyOwner = OwnerWithKeys | { readonly userId?: undefined; readonly orgId?: undefined };

export function toColumns({ userId, orgId }: KeyOwner): Pick<ApiKey, 'user_id' | 'org_id'> {
  return { user_id: userId ?? null, org_id: orgId ?? null };
}

/** A key as the API returns it. Absent members are null. */
export function toKeyJson(key: ApiKey) {
  const { user_id: userId, org_id: orgId } = key;
  return {
    id: key.id,
    name: key.name,
    prefix: key.prefix,
    last4: key.last4,
    owner: userId !== null ? { user_id: userId } : orgId !== null ? { org_id: orgId } : null,
    scopes: key.scopes,
    admin_scopes: key.admin_scopes,
    role: key.role,
    plan: key.plan,
    limit: key.rate_limit,
    expires_at: key.expires_at,
    allowed_networks: key.allowed_networks,
    metadata: key.metadata,
    disabled: key.disabled,
    created_at: key.created_at,
    updated_at: key.updated_at,
    last_used_at: key.last_used_at,
    rotated_from: key.rotated_from,
    created_by: key.created_by,
  };
}
