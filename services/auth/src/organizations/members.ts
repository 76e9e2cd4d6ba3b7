import type { JsonObject } from '@tollgate/kit/json';
import { errors } from '../errors.ts';
import { getUser } from '../users/save-user.ts';
import type { User } from '../users/user.ts';
import { checkNewMember } from './hooks.ts';
import {
  type Change,
  getOrganization,
  lockForChange,
  type OrganizationsContext,
  organizationAudit,
} from './organizations.ts';
import { readRole, requireMaySetRole } from './roles.ts';
import type { Member, Membership } from './store.ts';

export function toMemberJson({ userId, role, email, name, createdAt }: Member): JsonObject {
  return {
    user_id: userId,
    role,
    email,
    ...(name !== '' && { name }),
    created_at: createdAt.toISOString(),
  };
}

/** A change of a member. */
interface MemberChange extends Change {
  readonly organizationId: string;
  readonly userId: string;
  /** Role of the member who makes it. Undefined for administrators, who may do everything. */
  readonly own: string | undefined;
}

/**
 * Adds a user, or changes their role.
 *
 * @throws AppError `organization_not_found`, `user_not_found`, `validation_failed`,
 * `last_organization_owner`
 */
export async function putMember(
  context: OrganizationsContext,
  {
    organizationId: id,
    userId,
    role: wanted,
    ...change
  }: Omit<MemberChange, 'own'> & { readonly role: string | undefined },
): Promise<Member> {
  const { store, settings } = context;
  const role = readRole(settings, wanted);
  const at = new Date(change.metadata.nowMs);
  if ((await store.organizations.findMember(id, userId)) === undefined) {
    const [organization, user] = [await getOrganization(context, id), await getUser(store, userId)];
    await checkNewMember(context, { organization, user, role, method: 'administrator' }, change.metadata);
  }
  return store.transaction(async ({ organizations }) => {
    const organization = await organizations.lock(id);
    if (organization === undefined) throw errors.organization_not_found();
    if ((await organizations.lockUser(userId)) === undefined) throw errors.user_not_found();
    const traits = { user_id: userId, role };
    const added = organizationAudit('organization_member_added', organization, change, traits);
    if (!(await organizations.addMember({ id, userId, role, at }, added))) {
      await keepAnOwner({ organizations }, { id, userId, role, at });
      const changed = organizationAudit('organization_member_modified', organization, change, traits);
      await organizations.setRole({ id, userId, role, at }, changed);
    }
    return getMember({ organizations }, id, userId);
  });
}

/**
 * Changes the role of a member.
 *
 * @throws AppError `organization_member_not_found`, `organization_permission_denied`,
 * `validation_failed`, `last_organization_owner`
 */
export async function changeRole(
  { store, settings }: OrganizationsContext,
  {
    organizationId: id,
    userId,
    role: wanted,
    own: given,
    ...change
  }: MemberChange & { readonly role: string | undefined },
): Promise<Member> {
  const role = readRole(settings, wanted);
  const at = new Date(change.metadata.nowMs);
  return store.transaction(async ({ organizations }) => {
    const { organization, own } = await lockForChange({ organizations, settings }, id, {
      ...{ own: given, actor: change.actor, permission: 'members:write' },
    });
    const before = await getMember({ organizations }, id, userId);
    if (own !== undefined) for (const each of [before.role, role]) requireMaySetRole(settings, own, each);
    await keepAnOwner({ organizations }, { id, userId, role, at });
    const traits = { user_id: userId, role, previous_role: before.role };
    const audit = organizationAudit('organization_member_modified', organization, change, traits);
    await organizations.setRole({ id, userId, role, at }, audit);
    return { ...before, role };
  });
}

/**
 * Removes a member. Members may always remove themselves, unless they are the last owner.
 *
 * @throws AppError `organization_member_not_found`, `organization_permission_denied`,
 * `last_organization_owner`
 */
export async function removeMember(
  { store, settings }: OrganizationsContext,
  { organizationId: id, userId, own: given, ...change }: MemberChange,
): Promise<void> {
  const at = new Date(change.metadata.nowMs);
  await store.transaction(async ({ organizations }) => {
    const { organization, own } = await lockForChange({ organizations, settings }, id, {
      ...{ own: given, actor: change.actor },
      permission: change.actor.id === userId ? undefined : 'members:write',
    });
    const { role } = await getMember({ organizations }, id, userId);
    if (own !== undefined && change.actor.id !== userId) requireMaySetRole(settings, own, role);
    await keepAnOwner({ organizations }, { id, userId, role: undefined, at });
    const audit = organizationAudit('organization_member_removed', organization, change, {
      user_id: userId,
      role,
    });
    await organizations.removeMember(id, userId, audit);
  });
}

/**
 * Adds a user who joins. `spend` ends in the same transaction what permits it.
 *
 * @throws AppError `organization_not_found`, `organization_member_exists`,
 * `over_organization_quota`, `over_member_quota`
 */
export async function addNewMember<Context extends OrganizationsContext>(
  { store, settings }: Context,
  {
    organizationId: id,
    user,
    role,
    ...change
  }: Change & { readonly organizationId: string; readonly user: User; readonly role: string },
  spend: (transaction: Context['store']) => Promise<void>,
): Promise<Membership> {
  const at = new Date(change.metadata.nowMs);
  return store.transaction(async (transaction) => {
    const { organizations } = transaction;
    const organization = await organizations.lock(id);
    if (organization === undefined) throw errors.organization_not_found();
    await spend(transaction);
    const { members } = await organizations.countMembers(id, at);
    if (members >= settings.organizationsMaxMembers) throw errors.over_member_quota();
    const memberships = await organizations.lockUser(user.id);
    if (memberships === undefined) throw errors.user_not_found();
    if (memberships >= settings.organizationsMaxPerUser) throw errors.over_organization_quota();
    const traits = { user_id: user.id, role };
    const audit = organizationAudit('organization_member_added', organization, change, traits);
    if (!(await organizations.addMember({ id, userId: user.id, role, at }, audit)))
      throw errors.organization_member_exists();
    return { organization, role };
  });
}

type Organizations = Pick<OrganizationsContext['store'], 'organizations'>;

/** @throws AppError `organization_member_not_found` */
async function getMember({ organizations }: Organizations, id: string, userId: string): Promise<Member> {
  const member = await organizations.findMember(id, userId);
  if (member === undefined) throw errors.organization_member_not_found();
  return member;
}

/**
 * Requires a lock on the organization, so that two owners cannot leave at the same time.
 *
 * @throws AppError `last_organization_owner`
 */
async function keepAnOwner(
  { organizations }: Organizations,
  {
    id,
    userId,
    role,
    at,
  }: { readonly id: string; readonly userId: string; readonly role: string | undefined; readonly at: Date },
): Promise<void> {
  if (role === 'owner') return;
  const member = await getMember({ organizations }, id, userId);
  const { owners } = await organizations.countMembers(id, at);
  if (member.role === 'owner' && owners < 2) throw errors.last_organization_owner();
}
