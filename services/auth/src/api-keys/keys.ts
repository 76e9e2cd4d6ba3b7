import type { JsonObject } from '@tollgate/kit/json';
import { isUuid } from '@tollgate/kit/text';
import { parseDuration } from '@tollgate/kit/time';
import type { AuditAction } from '../audit/actions.ts';
import { auditEntry } from '../audit/audit-log.ts';
import { describeChanges } from '../audit/changes.ts';
import { settingsSpec } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { type AdminRequest, checkScopes } from '../sessions/admin-request.ts';
import { type ApiKey, type KeyOwner, type OwnerWithKeys, toColumns } from './api-key.ts';
import type { ApiKeysContext } from './context.ts';
import { type KeyInput, type KeyValues, maxLifeMs, newKeyValues, readKeyInput } from './input.ts';
import { createKey, digestKey } from './key-format.ts';
import { checkGivenRights, checkNotItself, requireOwnRights } from './rights.ts';
import { isAtMost } from './role.ts';
import type { ApiKeyStore } from './store.ts';

/** A key with its text, which is returned once. */
export interface IssuedKey {
  readonly key: ApiKey;
  readonly text: string;
}

/** @throws AppError `feature_disabled` */
export function requireApiKeys({ settings }: ApiKeysContext): void {
  if (!settings.apiKeysEnabled)
    throw errors.feature_disabled({
      message: `API keys are not enabled: set ${settingsSpec.apiKeysEnabled.env}`,
      httpStatus: 404,
    });
}

/** @throws AppError `api_key_not_found` */
export async function getApiKey({ store }: ApiKeysContext, id: string): Promise<ApiKey> {
  const key = isUuid(id) ? await store.apiKeys.find(id) : undefined;
  if (key === undefined) throw errors.api_key_not_found();
  return key;
}

/** A key of the owner. @throws AppError `api_key_not_found`, also for keys of others. */
export async function getOwnKey(context: ApiKeysContext, owner: OwnerWithKeys, id: string): Promise<ApiKey> {
  const key = await getApiKey(context, id);
  const { user_id, org_id } = toColumns(owner);
  if (key.user_id !== user_id || key.org_id !== org_id) throw errors.api_key_not_found();
  return key;
}

/**
 * A key that the owner, or a member of it, may change or rotate.
 *
 * @throws AppError `api_key_not_found`, `not_admin`
 */
export async function getOwnKeyForChange(
  context: ApiKeysContext,
  owner: OwnerWithKeys,
  { id, nowMs }: { readonly id: string; readonly nowMs: number },
): Promise<ApiKey> {
  const key = await getOwnKey(context, owner, id);
  requireOwnRights(key, { settings: context.settings, nowMs });
  return key;
}

/**
 * Creates a key.
 *
 * @param maxKeys of its owner; default: any number
 * @param byMember whether a member of the organization that owns it issues it; default false
 * @throws AppError `validation_failed`, `user_not_found`, `organization_not_found`,
 *   `too_many_api_keys`, `insufficient_scope`
 */
export async function createApiKey(
  context: ApiKeysContext,
  {
    owner,
    input,
    maxKeys,
    byMember = false,
  }: {
    readonly owner: KeyOwner;
    readonly input: KeyInput;
    readonly maxKeys?: number;
    readonly byMember?: boolean;
  },
  request: AdminRequest,
): Promise<IssuedKey> {
  const { nowMs } = request.metadata;
  const values = readKeyInput(input, newKeyValues, nowMs);
  await checkGivenRights(context, request, { ...values, ...toColumns(owner) });
  await checkRole(context, values.role, owner.userId);
  const columns = { ...values, ...toColumns(owner), rotated_from: null, by_member: byMember };
  const { key, text } = issueKey(context, columns, request);
  const audit = keyAudit('api_key_created', key, request);
  const isCreated = await context.store.transaction(async ({ apiKeys }) => {
    await requireRoom(apiKeys, key, maxKeys);
    return apiKeys.insert(key, digestKey(text), audit);
  });
  if (!isCreated) throw owner.orgId === undefined ? errors.user_not_found() : errors.organization_not_found();
  return { key, text };
}

/**
 * Locks the user who is to own the key. An organization is locked by the change of its member.
 *
 * @throws AppError `too_many_api_keys`
 */
async function requireRoom(
  apiKeys: ApiKeyStore,
  { user_id: userId, org_id: orgId, created_at: at }: ApiKey,
  maxKeys: number | undefined,
): Promise<void> {
  const ownerId = userId ?? orgId;
  if (ownerId === null || maxKeys === undefined) return;
  if (userId !== null) await apiKeys.lockUser(userId);
  if ((await apiKeys.countKept(ownerId, at)) >= maxKeys) throw errors.too_many_api_keys();
}

function issueKey(
  { settings, random }: ApiKeysContext,
  values: KeyValues & Pick<ApiKey, 'user_id' | 'org_id' | 'rotated_from' | 'by_member'>,
  { actor, metadata }: AdminRequest,
): IssuedKey {
  const at = new Date(metadata.nowMs);
  const text = createKey(settings.apiKeyPrefix, random);
  const key = {
    ...values,
    id: random.uuid(),
    prefix: settings.apiKeyPrefix,
    last4: text.slice(-4),
    created_at: at,
    updated_at: at,
    last_used_at: null,
    created_by: actor.id,
  };
  return { key, text };
}

/** @throws AppError `validation_failed` if the role is above that of the user who owns the key. */
async function checkRole(
  { store, settings }: ApiKeysContext,
  role: string | null,
  userId: string | null | undefined,
): Promise<void> {
  if (role === null || typeof userId !== 'string') return;
  const user = await store.users.findById(userId);
  if (user === undefined || isAtMost(role, user.role, settings.apiKeyRoles)) return;
  throw errors.validation_failed({
    message: `role must be that of the owner, or a lower one of ${settingsSpec.apiKeyRoles.env}`,
  });
}

/** @throws AppError `validation_failed`, `conflict` */
export async function updateApiKey(
  context: ApiKeysContext,
  before: ApiKey,
  { input, request }: { readonly input: KeyInput; readonly request: AdminRequest },
): Promise<ApiKey> {
  const { nowMs } = request.metadata;
  const values = readKeyInput(input, before, nowMs);
  checkNotItself(request, before);
  checkScopes(request, before.admin_scopes);
  await checkGivenRights(context, request, { ...before, ...values });
  if (values.role !== before.role) await checkRole(context, values.role, before.user_id);
  const changes = describeChanges(
    Object.entries(values).map(([name, after]) => ({
      name: name === 'rate_limit' ? 'limit' : name,
      // A KeyValues has the columns of a key.
      before: before[name as keyof KeyValues],
      after,
    })),
  );
  const key = { ...before, ...values, updated_at: new Date(nowMs) };
  const audit = keyAudit('api_key_updated', key, request, changes);
  if (!(await context.store.apiKeys.update(key, before.updated_at, audit))) throw errors.conflict();
  return key;
}

/** Longer than the release cycle of most applications. */
const maxGraceMs = 30 * 24 * 3_600_000;

/**
 * Replaces a key by a new one with the same values and the same lifetime. The old key stays valid
 * for the grace, a duration in Go's syntax; by default it ends at once.
 *
 * @throws AppError `validation_failed`, `too_many_api_keys`, `conflict`
 */
export async function rotateApiKey(
  context: ApiKeysContext,
  {
    old,
    grace = '',
    maxKeys,
    byMember = false,
  }: {
    readonly old: ApiKey;
    readonly grace?: string | undefined;
    readonly maxKeys?: number;
    readonly byMember?: boolean;
  },
  request: AdminRequest,
): Promise<IssuedKey> {
  checkNotItself(request, old);
  const { nowMs } = request.metadata;
  const graceMs = grace === '' ? 0 : parseDuration(grace);
  if (graceMs === undefined || graceMs < 0 || graceMs > maxGraceMs)
    throw errors.validation_failed({ message: 'grace must be a duration such as 24h, at most 720h' });
  const { expires_at: expiry, created_at: createdAt } = old;
  const lifeMs = expiry && Math.min(expiry.getTime() - createdAt.getTime(), maxLifeMs);
  const expires_at = lifeMs === null ? null : new Date(nowMs + lifeMs);
  await checkGivenRights(context, request, { ...old, expires_at });
  const columns = { ...old, expires_at, rotated_from: old.id, by_member: byMember };
  const { key, text } = issueKey(context, columns, request);
  const audit = keyAudit('api_key_rotated', key, request, { rotated_from: old.id, grace: grace || '0s' });
  const isRotated = await context.store.transaction(async ({ apiKeys }) => {
    // Keys that were replaced count, too: otherwise rotations could add any number.
    await requireRoom(apiKeys, key, maxKeys && 2 * maxKeys);
    const { id, updated_at: version } = old;
    const validUntil = new Date(nowMs + graceMs);
    return apiKeys.rotate({ key, digest: digestKey(text) }, { id, version, validUntil }, audit);
  });
  if (!isRotated) throw errors.conflict({ message: 'The key has changed, or has been rotated already' });
  return { key, text };
}

/** Deletes a key. @throws AppError `api_key_not_found` */
export async function revokeApiKey(
  { store }: ApiKeysContext,
  key: ApiKey,
  request: AdminRequest,
): Promise<void> {
  checkScopes(request, key.admin_scopes);
  if (!(await store.apiKeys.delete(key.id, keyAudit('api_key_revoked', key, request))))
    throw errors.api_key_not_found();
}

function keyAudit(
  action: AuditAction,
  { id, name, user_id: userId, org_id: orgId }: ApiKey,
  { actor, metadata }: AdminRequest,
  more: JsonObject = {},
) {
  return auditEntry(actor, action, {
    metadata,
    traits: {
      key_id: id,
      key_name: name,
      ...(userId !== null && { user_id: userId }),
      ...(orgId !== null && { org_id: orgId }),
      ...more,
    },
  });
}
