import type { HookName, HookPayloads } from '../config/hook-definitions.ts';
import { errors } from '../errors.ts';
import type { HooksContext } from '../hooks/hooks.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { toUserJson, type User } from '../users/user.ts';
import { type Organization, toOrganizationJson } from './organization.ts';

/** How a user becomes a member. */
type JoinMethod = 'invitation' | 'domain' | 'administrator';

/**
 * Lets a hook reject an organization that is about to be created.
 *
 * @throws AppError the error of the hook, or `unknown` for the decision `reject`
 */
export async function checkNewOrganization(
  context: HooksContext,
  organization: Organization,
  user: User | undefined,
  metadata: RequestMetadata,
): Promise<void> {
  const payload = {
    organization: toOrganizationJson(organization),
    ...(user && { user: toUserJson(user) }),
  };
  await decide(context, 'BEFORE_ORGANIZATION_CREATED', payload, metadata);
}

/**
 * Lets a hook reject a member who is about to be added. An owner who creates an organization is
 * part of the organization.
 *
 * @throws AppError as `checkNewOrganization`
 */
export async function checkNewMember(
  context: HooksContext,
  member: {
    readonly organization: Organization;
    readonly user: User;
    readonly role: string;
    readonly method: JoinMethod;
  },
  metadata: RequestMetadata,
): Promise<void> {
  const { organization, user, role, method } = member;
  const payload = { organization: toOrganizationJson(organization), user: toUserJson(user), role, method };
  await decide(context, 'BEFORE_MEMBER_ADDED', payload, metadata);
}

async function decide<Name extends HookName>(
  { hooks }: HooksContext,
  name: Name,
  payload: HookPayloads[Name],
  metadata: RequestMetadata,
): Promise<void> {
  if (!hooks.enabled.has(name)) return;
  const { decision, message } = await hooks.call(name, payload, metadata);
  if (decision === 'reject') throw errors.unknown(message ? { message } : {});
}
