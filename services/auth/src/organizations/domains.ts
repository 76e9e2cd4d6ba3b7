import { errors } from '../errors.ts';
import type { User } from '../users/user.ts';
import type { DomainStore, OrganizationDomain } from './domain-store.ts';
import { checkNewMember } from './hooks.ts';
import { addNewMember } from './members.ts';
import type { Organization } from './organization.ts';
import {
  type Change,
  getOrganization,
  type OrganizationsContext,
  organizationAudit,
} from './organizations.ts';
import type { Membership } from './store.ts';

export type DomainsContext = OrganizationsContext & { readonly store: { readonly domains: DomainStore } };

/** A host name with at least one dot. */
const domainForm = /^(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/;

/** Providers of mail: an address there does not tell the employer of its user. */
const mailProviders =
  /^(?:(?:gmail|googlemail|outlook|hotmail|live|msn|yahoo|icloud|me|aol|protonmail)\.com|proton\.me|(?:gmx|web)\.[a-z]+|(?:mail|yandex)\.(?:com|ru)|qq\.com|163\.com)$/;

/** @throws AppError `validation_failed` */
function readDomain(text: string): string {
  const domain = text.toLowerCase();
  if (!domainForm.test(domain))
    throw errors.validation_failed({ message: 'domain must be a host name such as example.com' });
  if (mailProviders.test(domain))
    throw errors.validation_failed({ message: `${domain} is a domain of a mail provider` });
  return domain;
}

/** A change of a domain by an administrator, who knows that the organization owns it. */
interface DomainChange extends Change {
  readonly id: string;
  readonly domain: string;
}

/** @throws AppError `organization_not_found`, `validation_failed`, `organization_domain_exists` */
export async function addDomain(
  context: DomainsContext,
  { id, domain: text, ...change }: DomainChange,
): Promise<OrganizationDomain> {
  const domain = readDomain(text);
  const organization = await getOrganization(context, id);
  const at = new Date(change.metadata.nowMs);
  const audit = organizationAudit('organization_domain_added', organization, change, { domain });
  if (!(await context.store.domains.add({ id, domain, at }, audit)))
    throw errors.organization_domain_exists();
  return { domain, verifiedAt: at };
}

/** @throws AppError `organization_not_found`, `organization_domain_not_found` */
export async function removeDomain(
  context: DomainsContext,
  { id, domain: text, ...change }: DomainChange,
): Promise<void> {
  const domain = text.toLowerCase();
  const organization = await getOrganization(context, id);
  const audit = organizationAudit('organization_domain_removed', organization, change, { domain });
  if (!(await context.store.domains.remove({ id, domain }, audit)))
    throw errors.organization_domain_not_found();
}

/**
 * Organizations that a user may join by the domain of their confirmed email. With autoconfirm, an
 * address proves nothing; that of an SSO user is what their identity provider asserts.
 */
export async function listJoinable(
  { store, settings }: DomainsContext,
  { id, email, emailConfirmedAt, isSsoUser }: User,
): Promise<readonly Organization[]> {
  if (settings.mailerAutoconfirm || isSsoUser || emailConfirmedAt === undefined || email === '') return [];
  return store.domains.listJoinable(email.slice(email.lastIndexOf('@') + 1).toLowerCase(), id);
}

/**
 * Makes the user a member of an organization with the domain of their email.
 *
 * @throws AppError `organization_not_found`, `over_organization_quota`, `over_member_quota`, and
 * the error of a hook
 */
export async function joinByDomain(
  context: DomainsContext,
  { id, user, ...change }: Change & { readonly id: string; readonly user: User },
): Promise<Membership> {
  const organization = (await listJoinable(context, user)).find((each) => each.id === id);
  const role = organization?.domainRole;
  if (organization === undefined || role === undefined) throw errors.organization_not_found();
  await checkNewMember(context, { organization, user, role, method: 'domain' }, change.metadata);
  return addNewMember(context, { ...change, organizationId: id, user, role }, async (transaction) => {
    // It may have changed while the hook was called.
    const current = await listJoinable({ ...context, store: transaction }, user);
    if (!current.some((each) => each.id === id && each.domainRole === role))
      throw errors.organization_not_found();
  });
}
