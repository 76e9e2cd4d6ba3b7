import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type AccessToken, signAccessToken } from '../sessions/access-token.ts';
import type { ActiveOrganization } from '../sessions/store.ts';
import type { MemberCaller, OrganizationsContext } from './organizations.ts';

/**
 * Makes an organization the active one of a session, or none (`null`), and issues an access token
 * for it. The refresh token stays: it keeps the organization, too.
 *
 * @throws AppError `organization_not_found`
 */
export async function switchOrganization(
  context: OrganizationsContext,
  { user, session, organizationId }: MemberCaller & { readonly organizationId: string | null },
  metadata: RequestMetadata,
): Promise<AccessToken & { readonly organization: ActiveOrganization | undefined }> {
  const { store } = context;
  const organization =
    organizationId === null ? undefined : await findActive(context, user.id, organizationId);
  // Signed first: a hook may reject the request.
  const token = await signAccessToken(
    context,
    { user, session: { ...session, organization }, method: 'token_refresh' },
    metadata,
  );
  if (organization === undefined) await store.organizations.deactivate(session.id);
  else if (!(await store.organizations.activate({ sessionId: session.id, userId: user.id }, organization.id)))
    throw errors.organization_not_found();
  return { ...token, organization };
}

async function findActive(
  { store }: OrganizationsContext,
  userId: string,
  id: string,
): Promise<ActiveOrganization> {
  const membership = await store.organizations.findMembership(id, userId);
  if (membership === undefined) throw errors.organization_not_found();
  const { organization, role } = membership;
  return { id: organization.id, slug: organization.slug, role };
}
