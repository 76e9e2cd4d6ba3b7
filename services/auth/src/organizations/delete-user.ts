import { auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { User } from '../users/user.ts';
import type { OrganizationsContext } from './organizations.ts';

/**
 * Deletes a user at their own request. All of their sessions end at once, those of OAuth clients
 * included.
 *
 * @throws AppError `last_organization_owner` if an organization would have members without an owner
 */
export async function deleteOwnUser(
  { store, settings }: OrganizationsContext,
  user: User,
  metadata: RequestMetadata,
): Promise<void> {
  const audit = auditEntry(user, 'user_deleted', { metadata });
  await store.transaction(async ({ users, organizations }) => {
    if (settings.organizationsEnabled)
      await checkOwners({ organizations }, user.id, new Date(metadata.nowMs));
    await users.delete(user.id, audit);
  });
}

async function checkOwners(
  { organizations }: Pick<OrganizationsContext['store'], 'organizations'>,
  userId: string,
  at: Date,
): Promise<void> {
  const memberships = await organizations.listMemberships(userId);
  const owned = memberships.flatMap(({ role, organization: { id } }) => (role === 'owner' ? [id] : []));
  // Sorted, so that two owners who leave at the same time cannot deadlock.
  for (const id of owned.toSorted()) {
    await organizations.lock(id);
    const { owners, members } = await organizations.countMembers(id, at);
    if (owners < 2 && members > 1) throw errors.last_organization_owner();
  }
}
