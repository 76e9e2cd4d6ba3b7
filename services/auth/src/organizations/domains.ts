import type { JsonObject } from '@tollgate/kit/json';
import { errors, shorten } from '../errors.ts';
import { randomDigestedToken } from '../keys/secrets.ts';
import type { User } from '../users/user.ts';
import { lookUpTxt } from './dns.ts';
import type { DomainStore, OrganizationDomain } from './domain-store.ts';
import { checkNewMember } from './hooks.ts';
import { addNewMember } from './members.ts';
import type { Organization } from './organization.ts';
import {
  type Change,
  getOrganization,
  lockForChange,
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

/** A change of a domain. */
interface DomainChange extends Change {
  readonly id: string;
  readonly domain: string;
  /** Role of the member who makes it. Undefined for administrators, who may do everything. */
  readonly own: string | undefined;
}

/** Domains of an organization, also claimed ones. */
const maxDomains = 20;

export function toDomainJson({ domain, token, verifiedAt }: OrganizationDomain): JsonObject {
  return {
    domain,
    verified_at: verifiedAt?.toISOString() ?? null,
    ...(verifiedAt === undefined && { record: { type: 'TXT', ...proofRecord(domain, token) } }),
  };
}

/** A name of its own has few records, and may be delegated. */
function proofRecord(domain: string, token: string): { readonly name: string; readonly value: string } {
  return { name: `_tollgate-challenge.${domain}`, value: `tollgate-verification=${token}` };
}

/**
 * Claims a domain for an organization, which has it once the record proves it. A domain that it has
 * or claims is returned.
 *
 * @throws AppError `validation_failed`, `organization_domain_exists`, `over_domain_quota`, and as
 * `lockForChange`
 */
export async function claimDomain(
  { store, settings, random }: DomainsContext,
  { id, domain: text, own, ...change }: DomainChange,
): Promise<OrganizationDomain> {
  const domain = readDomain(text);
  return store.transaction(async ({ organizations, domains }) => {
    const { organization } = await lockDomains({ organizations, settings }, { id, own, ...change });
    const known = await domains.find({ id, domain });
    if (known !== undefined) return known;
    if (await domains.isTaken({ id, domain })) throw errors.organization_domain_exists();
    if ((await domains.count(id)) >= maxDomains) throw errors.over_domain_quota();
    const token = randomDigestedToken(random);
    const audit = organizationAudit('organization_domain_added', organization, change, { domain });
    await domains.claim({ id, domain, token, at: new Date(change.metadata.nowMs) }, audit);
    return { domain, token, verifiedAt: undefined };
  });
}

function lockDomains(
  context: Parameters<typeof lockForChange>[0],
  { id, own, actor }: Pick<DomainChange, 'id' | 'own' | 'actor'>,
) {
  return lockForChange(context, id, { own, actor, permission: 'domains:write' });
}

/**
 * Verifies a claimed domain by its TXT record.
 *
 * @throws AppError `organization_domain_not_found`, `organization_domain_not_verified`,
 * `organization_domain_exists`, `over_request_rate_limit`, and as `lockForChange`
 */
export async function verifyDomain(
  context: DomainsContext,
  { id, domain: text, own, ...change }: DomainChange,
): Promise<OrganizationDomain> {
  const { store, settings, limiter } = context;
  const { nowMs } = change.metadata;
  const domain = text.toLowerCase();
  const claimed = await store.domains.find({ id, domain });
  if (claimed === undefined) throw errors.organization_domain_not_found();
  if (claimed.verifiedAt !== undefined) return claimed;
  await limiter.enforce('organization_domain_check', { key: id, nowMs });
  const { token } = claimed;
  await requireRecord(context, proofRecord(domain, token));
  const verifiedAt = new Date(nowMs);
  return store.transaction(async ({ organizations, domains }) => {
    const { organization } = await lockDomains({ organizations, settings }, { id, own, ...change });
    const audit = organizationAudit('organization_domain_verified', organization, change, { domain });
    const result = await domains.verify({ id, domain, token, at: verifiedAt }, audit);
    if (result === 'taken') throw errors.organization_domain_exists();
    // Removed, or verified by another request, in the meantime.
    const current = result ? { ...claimed, verifiedAt } : await domains.find({ id, domain });
    if (current?.verifiedAt === undefined) throw errors.organization_domain_not_found();
    return current;
  });
}

/** A name has few records; the message must not repeat a large answer. */
const maxShown = 5;

/** @throws AppError `organization_domain_not_verified` */
async function requireRecord(
  { settings }: DomainsContext,
  { name, value }: ReturnType<typeof proofRecord>,
): Promise<void> {
  const { organizationsDnsServers: servers, organizationsDnsTimeoutMs: timeoutMs } = settings;
  const found = await lookUpTxt(name, { servers, timeoutMs });
  if (found.ok && found.values.includes(value)) return;
  const shown = found.ok ? found.values.slice(0, maxShown).map((each) => JSON.stringify(shorten(each))) : [];
  const outcome = !found.ok
    ? `but the DNS server did not answer: ${found.code}`
    : shown.length === 0
      ? 'but there is no such record'
      : `found ${shown.join(', ')}`;
  throw errors.organization_domain_not_verified({
    message: `Expected the TXT record ${name} with the value ${value}, ${outcome}`,
  });
}

/**
 * Gives a domain to an organization. The administrator knows that it owns it.
 *
 * @throws AppError `organization_not_found`, `validation_failed`, `organization_domain_exists`
 */
export async function addDomain(
  context: DomainsContext,
  { id, domain: text, ...change }: Omit<DomainChange, 'own'>,
): Promise<OrganizationDomain> {
  const domain = readDomain(text);
  const organization = await getOrganization(context, id);
  const at = new Date(change.metadata.nowMs);
  const audit = organizationAudit('organization_domain_added', organization, change, { domain });
  if (!(await context.store.domains.add({ id, domain, at }, audit)))
    throw errors.organization_domain_exists();
  return { domain, token: '', verifiedAt: at };
}

/** @throws AppError `organization_domain_not_found`, and as `lockForChange` */
export async function removeDomain(
  { store, settings }: DomainsContext,
  { id, domain: text, own, ...change }: DomainChange,
): Promise<void> {
  const domain = text.toLowerCase();
  await store.transaction(async ({ organizations, domains }) => {
    const { organization } = await lockDomains({ organizations, settings }, { id, own, ...change });
    const audit = organizationAudit('organization_domain_removed', organization, change, { domain });
    if (!(await domains.remove({ id, domain }, audit))) throw errors.organization_domain_not_found();
  });
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
