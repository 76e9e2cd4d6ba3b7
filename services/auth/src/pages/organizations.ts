import { type Html, html } from '@tollgate/kit/html';
import { isUuid } from '@tollgate/kit/text';
import { errors } from '../errors.ts';
import { switchOrganization } from '../organizations/active.ts';
import { joinByDomain, listJoinable } from '../organizations/domains.ts';
import { removeMember } from '../organizations/members.ts';
import type { Organization } from '../organizations/organization.ts';
import { createOrganization, requireMembership } from '../organizations/organizations.ts';
import { areaForm, areaPage } from './area.ts';
import { field, form } from './forms.ts';
import { invitationOf } from './invitation.ts';
import type { Outcome } from './page.ts';
import { roleLabel } from './texts/texts.ts';
import type { Owner, Visit } from './visit.ts';

/** The id of an organization in a form or a query. @throws AppError `organization_not_found` */
export function readOrganizationId(id = ''): string {
  if (!isUuid(id)) throw errors.organization_not_found();
  return id.toLowerCase();
}

/** Organizations of the user, with offers to join others. */
export const organizationsPage = areaPage('organizations', viewOrganizations);

async function viewOrganizations(
  visit: Visit,
  { user, session }: Owner,
  { problem }: Outcome,
): Promise<Html> {
  const { context, texts } = visit;
  const { settings, store } = context;
  const memberships = await store.organizations.listMemberships(user.id);
  const joinable = await listJoinable(context, user);
  const active = session.organization?.id;
  const buttonOf =
    ({ id, name }: Pick<Organization, 'id' | 'name'>) =>
    (target: string, label: string) =>
      form(visit, {
        action: visit.path(target),
        content: html`<input type="hidden" name="organization_id" value="${id}">
<button class="link" aria-label="${label}: ${name}">${label}</button>`,
      });
  const items = memberships.map(({ organization, role }) => {
    const { id, name } = organization;
    const button = buttonOf(organization);
    return html`<li><span><a href="${visit.path('organization', { id })}">${name}</a>${id === active && html` <strong>(${texts.activeOrganization})</strong>`}<br>
<small>${roleLabel(role, texts)}</small></span>
${id !== active && button('organization-switch', texts.useOrganization)}
${button('organization-leave', texts.leave)}</li>`;
  });
  const offers = joinable.map(
    (organization) => html`<li><span>${organization.name}<br>
<small>${texts.joinableText}</small></span>
${buttonOf(organization)('organization-join', texts.join)}</li>`,
  );
  const create = form(visit, {
    action: visit.path('organization-create'),
    content: html`${field(
      {
        name: 'organization_name',
        label: texts.organizationName,
        autocomplete: 'organization',
        value: visit.form.organization_name,
      },
      problem,
    )}
<button class="secondary">${texts.createOrganization}</button>`,
  });
  return html`${invitationOf(visit) !== undefined && html`<p><a class="button" href="${visit.path('invitation')}">${texts.openInvitation}</a></p>`}
${items.length + offers.length > 0 && html`<ul class="items">${[...items, ...offers]}</ul>`}
${settings.organizationsCreate === 'any' && create}`;
}

export const switchOrganizationForm = areaForm(
  organizationsPage,
  'organization-switch',
  async (visit, owner) => {
    const organizationId = readOrganizationId(visit.form.organization_id);
    await switchOrganization(visit.context, { ...owner, organizationId }, visit.metadata);
    return 'organization';
  },
);

/** Joins an organization that has the domain of the user's email, and switches to it. */
export const joinOrganizationForm = areaForm(organizationsPage, 'organization-join', async (visit, owner) => {
  const { context, metadata } = visit;
  const { user } = owner;
  const id = readOrganizationId(visit.form.organization_id);
  await joinByDomain(context, { id, user, actor: user, metadata });
  await switchOrganization(context, { ...owner, organizationId: id }, metadata);
  return 'joined';
});

export const leaveOrganizationForm = areaForm(
  organizationsPage,
  'organization-leave',
  async (visit, owner) => {
    const { context, metadata } = visit;
    const organizationId = readOrganizationId(visit.form.organization_id);
    const { user } = owner;
    const { role: own } = await requireMembership(context, organizationId, {
      ...owner,
      permission: 'organization:read',
    });
    await removeMember(context, { organizationId, userId: user.id, own, actor: user, metadata });
    return 'organization-left';
  },
);

export const createOrganizationForm = areaForm(
  organizationsPage,
  'organization-create',
  async (visit, { user }) => {
    const { context, metadata, form: fields } = visit;
    const { settings } = context;
    if (settings.organizationsCreate === 'admin') throw errors.organization_permission_denied();
    await createOrganization(
      context,
      { name: fields.organization_name ?? '' },
      { actor: user, metadata, ownerId: user.id, maxPerUser: settings.organizationsMaxPerUser },
    );
    return 'organization';
  },
);
