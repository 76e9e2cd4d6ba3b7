import type { JsonObject } from '@tollgate/kit/json';
import type { AuditAction } from '../audit/actions.ts';
import { type AuditActor, auditEntry } from '../audit/audit-log.ts';
import { describeChanges } from '../audit/changes.ts';
import type { OrganizationPermission } from '../config/organizations.ts';
import type { Transactions } from '../db/connection.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { randomBase32 } from '../keys/secrets.ts';
import { requireSecondFactor } from '../sessions/assurance.ts';
import type { SessionsContext } from '../sessions/context.ts';
import type { Session } from '../sessions/store.ts';
import { getUser } from '../users/save-user.ts';
import type { User } from '../users/user.ts';
import { checkNewOrganization } from './hooks.ts';
import {
  type Organization,
  readLimit,
  readOrganizationMetadata,
  readOrganizationName,
  readPlan,
  readSlug,
  slugFromName,
} from './organization.ts';
import { isPermitted, requireMaySetRole } from './roles.ts';
import type { Membership, OrganizationStore } from './store.ts';

export type OrganizationsContext = SessionsContext & {
  readonly store: { readonly organizations: OrganizationStore } & Transactions;
};

/** A change, and who makes it. */
export interface Change {
  readonly actor: AuditActor;
  readonly metadata: RequestMetadata;
}

/** The user who calls, and their session. */
export interface MemberCaller {
  readonly user: User;
  readonly session: Session;
}

/** Values of a client or an administrator. Absent ones are not changed, or have defaults. */
export interface OrganizationInput {
  readonly name?: string | undefined;
  readonly slug?: string | undefined;
  /** An empty text: none. */
  readonly plan?: string | undefined;
  /** An empty object: none. */
  readonly limit?: JsonObject | undefined;
  readonly metadata?: JsonObject | undefined;
  /** `null`: users cannot join by domain. */
  readonly domainRole?: string | null | undefined;
}

/** An entry about an organization. */
export function organizationAudit(
  action: AuditAction,
  { id, slug }: Pick<Organization, 'id' | 'slug'>,
  { actor, metadata }: Change,
  traits?: JsonObject,
) {
  return auditEntry(actor, action, { metadata, traits: { org_id: id, org_slug: slug, ...traits } });
}

const suffixChars = 6;

/**
 * Creates an organization.
 *
 * @throws AppError `validation_failed`, `organization_slug_exists`; with an owner `user_not_found`,
 * and `over_organization_quota` if `maxPerUser` is reached
 */
export async function createOrganization(
  context: OrganizationsContext,
  input: OrganizationInput,
  {
    ownerId,
    maxPerUser = Number.POSITIVE_INFINITY,
    ...change
  }: Change & { readonly ownerId: string | undefined; readonly maxPerUser?: number },
): Promise<Organization> {
  const { store, random } = context;
  const name = readOrganizationName(input.name);
  const suffix = randomBase32(random, suffixChars);
  const at = new Date(change.metadata.nowMs);
  const id = random.uuid();
  const slug = input.slug === undefined ? slugFromName(name, suffix) : readSlug(input.slug);
  const given: Organization = merge(
    { ...{ id, name, slug, metadata: {} }, ...none, createdAt: at, updatedAt: at },
    { ...input, slug },
    at,
  );
  const owner = ownerId === undefined ? undefined : await getUser(store, ownerId);
  // A hook must not be called in a transaction.
  await checkNewOrganization(context, given, owner, change.metadata);
  return store.transaction(async (transaction) => {
    if (ownerId !== undefined) {
      const memberships = await transaction.organizations.lockUser(ownerId);
      if (memberships === undefined) throw errors.user_not_found();
      if (memberships >= maxPerUser) throw errors.over_organization_quota();
    }
    // A slug of the name that is taken gets a suffix; one that the client has chosen is refused.
    const slugs = input.slug === undefined ? [slug, `${slug}-${suffix}`] : [slug];
    for (const candidate of slugs) {
      const organization = { ...given, slug: candidate };
      const audit = organizationAudit('organization_created', organization, change);
      if (await transaction.organizations.insert(organization, { ownerId, at, audit })) return organization;
    }
    throw errors.organization_slug_exists();
  });
}

const none = { plan: undefined, limit: undefined, domainRole: undefined };

/** @throws AppError `validation_failed` */
function merge(before: Organization, input: OrganizationInput, at: Date): Organization {
  return {
    ...before,
    ...(input.name !== undefined && { name: readOrganizationName(input.name) }),
    ...(input.slug !== undefined && {
      slug: input.slug === before.slug ? before.slug : readSlug(input.slug),
    }),
    ...(input.plan !== undefined && { plan: readPlan(input.plan) }),
    ...(input.limit !== undefined && { limit: readLimit(input.limit) }),
    ...(input.metadata !== undefined && { metadata: readOrganizationMetadata(input.metadata) }),
    ...(input.domainRole !== undefined && { domainRole: input.domainRole ?? undefined }),
    updatedAt: at,
  };
}

/**
 * @throws AppError `organization_not_found`, `organization_slug_exists`, `validation_failed`
 */
export async function updateOrganization(
  { store, settings }: OrganizationsContext,
  id: string,
  {
    input,
    own: given,
    ...change
  }: Change & { readonly input: OrganizationInput; readonly own: string | undefined },
): Promise<Organization> {
  return store.transaction(async ({ organizations }) => {
    const { organization: before, own } = await lockForChange({ organizations, settings }, id, {
      ...{ own: given, actor: change.actor, permission: 'organization:update' },
    });
    if (own !== undefined) requireMaySetDomainRole(settings, own, { before, input });
    const organization = merge(before, input, new Date(change.metadata.nowMs));
    const audit = organizationAudit(
      'organization_modified',
      organization,
      change,
      describeChanges(changedFields(before, organization)),
    );
    if (!(await organizations.update(organization, { before, audit })))
      throw errors.organization_slug_exists();
    return organization;
  });
}

/** @throws AppError `organization_permission_denied` */
function requireMaySetDomainRole(
  settings: OrganizationsContext['settings'],
  own: string,
  { before, input }: { readonly before: Organization; readonly input: OrganizationInput },
): void {
  const { domainRole } = input;
  if (domainRole === undefined || (domainRole ?? undefined) === before.domainRole) return;
  requirePermission(settings, own, 'domains:write');
  for (const role of [before.domainRole, domainRole]) if (role) requireMaySetRole(settings, own, role);
}

function changedFields(before: Organization, after: Organization) {
  const keys = ['name', 'slug', 'plan', 'limit', 'metadata', 'domainRole'] as const;
  return keys.map((key) => ({
    name: key === 'domainRole' ? 'domain_role' : key,
    before: before[key],
    after: after[key],
  }));
}

/** @throws AppError `organization_not_found` */
export async function deleteOrganization(
  { store, settings }: OrganizationsContext,
  id: string,
  { own, ...change }: Change & { readonly own: string | undefined },
): Promise<void> {
  await store.transaction(async ({ organizations }) => {
    const { organization } = await lockForChange({ organizations, settings }, id, {
      ...{ own, actor: change.actor, permission: 'organization:delete' },
    });
    await organizations.delete(id, organizationAudit('organization_deleted', organization, change));
  });
}

/** @throws AppError `organization_not_found` */
export async function getOrganization({ store }: OrganizationsContext, id: string): Promise<Organization> {
  const organization = await store.organizations.find(id);
  if (organization === undefined) throw errors.organization_not_found();
  return organization;
}

/**
 * The membership of a user, which must permit this. Organizations of others are not found, so that
 * their ids say nothing. A change needs the second factor of a user who has one.
 *
 * @throws AppError `organization_not_found`, `organization_permission_denied`, `insufficient_aal`
 */
export async function requireMembership(
  { store, settings }: OrganizationsContext,
  id: string,
  {
    user,
    session,
    permission,
  }: MemberCaller & { readonly permission: OrganizationPermission | 'organization:read' },
): Promise<Membership> {
  const membership = await store.organizations.findMembership(id, user.id);
  if (membership === undefined) throw errors.organization_not_found();
  if (permission === 'organization:read') return membership;
  requirePermission(settings, membership.role, permission);
  if (!permission.endsWith(':read'))
    requireSecondFactor(user, session, { message: 'AAL2 required to change an organization' });
  return membership;
}

/** @throws AppError `organization_permission_denied` */
function requirePermission(
  settings: OrganizationsContext['settings'],
  role: string,
  permission: OrganizationPermission,
): void {
  if (!isPermitted(settings, role, permission))
    throw errors.organization_permission_denied({
      message: `The role ${role} does not permit this: it lacks ${permission}`,
    });
}

/**
 * Locks an organization for a change, and reads the role of the member who makes it again, because
 * it may have ended since the request was authorized. `own` is undefined for administrators, who
 * have no role.
 *
 * @throws AppError `organization_not_found`, `organization_permission_denied`
 */
export async function lockForChange(
  {
    organizations,
    settings,
  }: { readonly organizations: OrganizationStore; readonly settings: OrganizationsContext['settings'] },
  id: string,
  {
    own,
    actor,
    permission,
  }: {
    readonly own: string | undefined;
    readonly actor: AuditActor;
    /** Undefined: each member may make the change. */
    readonly permission: OrganizationPermission | undefined;
  },
): Promise<{ readonly organization: Organization; readonly own: string | undefined }> {
  const organization = await organizations.lock(id);
  if (organization === undefined) throw errors.organization_not_found();
  if (own === undefined) return { organization, own };
  const current = await organizations.findMembership(id, actor.id);
  if (current === undefined) throw errors.organization_not_found();
  if (permission !== undefined) requirePermission(settings, current.role, permission);
  return { organization, own: current.role };
}
