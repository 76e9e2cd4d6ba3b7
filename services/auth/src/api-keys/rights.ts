import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { type AdminRequest, checkRoles, checkScopes } from '../sessions/admin-request.ts';
import type { ApiKey } from './api-key.ts';
import type { ApiKeysContext } from './context.ts';

type Rights = Pick<ApiKey, 'user_id' | 'role' | 'admin_scopes' | 'expires_at' | 'allowed_networks'>;

/**
 * Checks that an API key that creates, changes or rotates a key gives it nothing that it lacks
 * itself: admin scopes, a role of administrators, a longer life or more networks.
 *
 * @throws AppError `insufficient_scope`
 */
export async function checkGivenRights(
  context: ApiKeysContext,
  request: AdminRequest,
  rights: Rights,
): Promise<void> {
  if (request.scopes === undefined) return;
  const ownerIds = rights.user_id === null ? [] : [rights.user_id];
  checkRightsOfGiver(await readGiver(context, request, ownerIds), rights);
}

/** An API key that gives rights to other keys. */
interface Giver {
  readonly request: AdminRequest;
  readonly own: ApiKey | undefined;
  /** Roles of the users who get a key. */
  readonly ownerRoles: ReadonlyMap<string, string>;
  readonly settings: Settings;
}

/** Reads what {@link checkRightsOfGiver} needs, for keys of all these users. */
export async function readGiver(
  { store, settings }: ApiKeysContext,
  request: AdminRequest,
  ownerIds: readonly string[],
): Promise<Giver> {
  const own = await store.apiKeys.find(request.actor.id);
  return { request, own, ownerRoles: await store.users.findRoles(ownerIds), settings };
}

/** @throws AppError `insufficient_scope` */
export function checkRightsOfGiver(
  { request, own, ownerRoles, settings }: Giver,
  { user_id: ownerId, role, ...given }: Rights,
): void {
  checkScopes(request, given.admin_scopes);
  const ownerRole = ownerId === null ? undefined : ownerRoles.get(ownerId);
  checkRoles(request, [role ?? undefined, ownerRole], settings);
  if (given.admin_scopes.length === 0) return;
  if (own === undefined || !isWithin(given, own))
    throw errors.insufficient_scope({
      message: 'A key with admin scopes must not outlive the API key that gives them, or have more networks',
    });
}

type Reach = Pick<ApiKey, 'expires_at' | 'allowed_networks'>;

function isWithin(given: Reach, own: Reach): boolean {
  const ends = own.expires_at === null || (given.expires_at !== null && given.expires_at <= own.expires_at);
  const { allowed_networks: networks } = own;
  const isNear =
    networks.length === 0 ||
    (given.allowed_networks.length > 0 && given.allowed_networks.every((each) => networks.includes(each)));
  return ends && isNear;
}

/**
 * An API key with an end or networks could remove them otherwise.
 *
 * @throws AppError `insufficient_scope`
 */
export function checkNotItself({ scopes, actor }: AdminRequest, { id }: Pick<ApiKey, 'id'>): void {
  if (scopes !== undefined && actor.id === id)
    throw errors.insufficient_scope({ message: 'An API key must not change or rotate itself' });
}

/**
 * Users change and rotate only what they could have created, and members only what a member could
 * have created: a key that an administrator issued, blocked or gave more can only be revoked.
 *
 * @throws AppError `not_admin`
 */
export function requireOwnRights(
  key: ApiKey,
  { settings, nowMs }: { readonly settings: Pick<Settings, 'apiKeyScopes'>; readonly nowMs: number },
): void {
  const isOwn =
    (key.user_id === null ? key.by_member : key.created_by === key.user_id) &&
    key.role === null &&
    key.plan === null &&
    key.rate_limit === null &&
    key.admin_scopes.length === 0 &&
    key.scopes.every((scope) => settings.apiKeyScopes.includes(scope));
  const isActive = !key.disabled && (key.expires_at === null || key.expires_at.getTime() > nowMs);
  if (!isOwn || !isActive)
    throw errors.not_admin({
      message: 'Only an administrator can change or rotate this key; it can be revoked',
    });
}
