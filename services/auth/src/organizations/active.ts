import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { JwtClaims } from '../keys/jwt.ts';
import { type AccessToken, signAccessToken } from '../sessions/access-token.ts';
import { readAssurance } from '../sessions/assurance.ts';
import type { SessionLimits } from '../sessions/expiry.ts';
import type { ActiveOrganization, Session } from '../sessions/store.ts';
import { checkActive } from '../sessions/usable.ts';
import type { MemberCaller, OrganizationsContext } from './organizations.ts';

interface Switch extends MemberCaller {
  /** `null`: none. */
  readonly organizationId: string | null;
}

/**
 * Switches by an access token. A token that was stolen must not be a source of further ones: the
 * new token ends with it, and the session must be one that could be refreshed.
 *
 * @throws AppError `organization_not_found`, `session_expired`
 */
export async function switchByToken(
  context: OrganizationsContext,
  { claims, ...caller }: Switch & { readonly claims: JwtClaims },
  metadata: RequestMetadata,
): ReturnType<typeof switchOrganization> {
  const { nowMs } = metadata;
  await checkActive(context, caller, nowMs);
  const maxExpiresAt = lastUse(claims, context.settings);
  if (maxExpiresAt * 1000 <= nowMs) throw errors.session_expired();
  const session = asOfToken(caller.session, claims);
  return switchOrganization(context, { ...caller, session, maxExpiresAt }, metadata);
}

/** The session as the token has it: a factor that was verified since does not raise the token. */
function asOfToken(session: Session, claims: JwtClaims): Session {
  const aal = readAssurance(claims);
  const { iat } = claims;
  if (session.aal <= aal) return session;
  const methods = session.methods.filter(
    ({ at }) => typeof iat === 'number' && at.getTime() < (iat + 1) * 1000,
  );
  return { ...session, aal, methods };
}

/** When the gateway stops accepting a token, in seconds since 1970: it checks inactivity, too. */
function lastUse({ exp, iat }: JwtClaims, { sessionInactivityTimeoutMs }: SessionLimits): number {
  const endsIdle = sessionInactivityTimeoutMs > 0 && typeof iat === 'number';
  return Math.min(
    typeof exp === 'number' ? exp : Number.POSITIVE_INFINITY,
    endsIdle ? Math.floor(iat + sessionInactivityTimeoutMs / 1000) : Number.POSITIVE_INFINITY,
  );
}

/**
 * Makes an organization the active one of a session, or none (`null`), and issues an access token
 * for it. The refresh token stays: it keeps the organization, too.
 *
 * @throws AppError `organization_not_found`
 */
export async function switchOrganization(
  context: OrganizationsContext,
  { user, session, organizationId, maxExpiresAt }: Switch & { readonly maxExpiresAt?: number },
  metadata: RequestMetadata,
): Promise<AccessToken & { readonly organization: ActiveOrganization | undefined }> {
  const { store } = context;
  const organization =
    organizationId === null ? undefined : await findActive(context, user.id, organizationId);
  // Signed first: a hook may reject the request.
  const token = await signAccessToken(
    context,
    {
      user,
      session: { ...session, organization },
      method: 'token_refresh',
      ...(maxExpiresAt !== undefined && { maxExpiresAt }),
    },
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
