import { type Html, html } from '@tollgate/kit/html';
import { isUuid } from '@tollgate/kit/text';
import { getOwnKey, revokeApiKey } from '../api-keys/keys.ts';
import { requireSelfService } from '../api-keys/routes.ts';
import type { OrganizationPermission } from '../config/organizations.ts';
import { errors } from '../errors.ts';
import { invite, revokeInvitation } from '../organizations/invitations.ts';
import { changeKeys } from '../organizations/keys.ts';
import { changeRole, removeMember } from '../organizations/members.ts';
import { type Change, requireMembership } from '../organizations/organizations.ts';
import { isPermitted, maySetRole } from '../organizations/roles.ts';
import type { Member, Membership } from '../organizations/store.ts';
import { organizationKeySection } from './api-keys.ts';
import { areaView } from './area.ts';
import { field, form } from './forms.ts';
import { readOrganizationId } from './organizations.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import type { PageTexts } from './texts/en.ts';
import { roleLabel } from './texts/texts.ts';
import type { Owner, Visit } from './visit.ts';

/** Members, invitations and API keys of an organization. */
export const organizationPage: PageDefinition = {
  name: 'organization',
  access: 'user',
  view: viewOrganization,
};

/** A form of the page, for members with a permission. */
function organizationForm(
  name: string,
  permission: OrganizationPermission,
  submit: (visit: Visit, member: Owner & Membership & Change) => Promise<keyof PageTexts['saved']>,
): PageDefinition {
  return {
    name,
    access: 'user',
    hasPage: false,
    view: viewOrganization,
    async submit(visit) {
      const { context, owner, metadata, query } = visit;
      if (owner === undefined) return visit.redirect('sign-in');
      const id = readOrganizationId(query.id);
      const membership = await requireMembership(context, id, { ...owner, permission });
      const saved = await submit(visit, { ...owner, ...membership, actor: owner.user, metadata });
      return visit.redirect('organization', { id, saved });
    },
  };
}

/** The member or invitation of a form. @throws AppError `validation_failed` */
function readId({ form: { id = '' } }: Visit): string {
  if (!isUuid(id)) throw errors.validation_failed();
  return id.toLowerCase();
}

export const memberRoleForm = organizationForm('member-role', 'members:write', async (visit, member) => {
  const { role: own, organization, ...change } = member;
  const { role } = visit.form;
  await changeRole(visit.context, {
    ...change,
    ...{ organizationId: organization.id, userId: readId(visit), own, role },
  });
  return 'member';
});

export const memberRemoveForm = organizationForm('member-remove', 'members:write', async (visit, member) => {
  const { role: own, organization, ...change } = member;
  await removeMember(visit.context, {
    ...change,
    ...{ organizationId: organization.id, userId: readId(visit), own },
  });
  return 'member';
});

export const inviteForm = organizationForm('invite', 'members:invite', async (visit, member) => {
  const { role: own, ...change } = member;
  const { email, role } = visit.form;
  const redirectTo = visit.context.settings.siteUrl;
  await invite(visit.context, { ...change, own, email, role, redirectTo });
  return 'invitation';
});

export const invitationRevokeForm = organizationForm(
  'invitation-revoke',
  'members:invite',
  async (visit, member) => {
    await revokeInvitation(visit.context, { ...member, id: readId(visit) });
    return 'invitation-revoked';
  },
);

export const organizationKeyRevokeForm = organizationForm(
  'organization-key-revoke',
  'keys:write',
  async (visit, member) => {
    requireSelfService(visit.context);
    const owner = { orgId: member.organization.id };
    await changeKeys(visit.context, member, async (context) =>
      revokeApiKey(context, await getOwnKey(context, owner, visit.form.key_id ?? ''), member),
    );
    return 'api-key';
  },
);

async function viewOrganization(visit: Visit, outcome: Outcome): Promise<View> {
  const { context, owner, query, texts } = visit;
  // The page is for users: `access`.
  if (owner === undefined) return { title: texts.organizations, content: html`` };
  const id = readOrganizationId(query.id);
  const membership = await requireMembership(context, id, { ...owner, permission: 'organization:read' });
  return areaView(visit, 'organizations', {
    title: membership.organization.name,
    outcome,
    content: html`${await memberSection(visit, owner, membership)}
${await invitationSection(visit, membership, outcome.problem)}
${await organizationKeySection(visit, membership)}`,
  });
}

function can({ context }: Visit, { role }: Membership, permission: OrganizationPermission): boolean {
  return isPermitted(context.settings, role, permission);
}

async function memberSection(
  visit: Visit,
  { user }: Owner,
  membership: Membership,
): Promise<Html | undefined> {
  if (!can(visit, membership, 'members:read')) return undefined;
  const { context, texts } = visit;
  const { settings } = context;
  const members = await context.store.organizations.listMembers(membership.organization.id);
  const mayWrite = can(visit, membership, 'members:write');
  const items = members.map((member) => {
    const isChangeable =
      mayWrite && member.userId !== user.id && maySetRole(settings, membership.role, member.role);
    const name = member.name || member.email || member.userId;
    return html`<li><span>${name}${member.name !== '' && html`<br><small>${member.email}</small>`}${!isChangeable && html`<br><small>${roleLabel(member.role, texts)}</small>`}</span>
${isChangeable && memberForms(visit, membership, { ...member, name })}</li>`;
  });
  return html`<section aria-labelledby="members-title">
<h2 id="members-title">${texts.members}</h2>
<ul class="items">${items}</ul>
</section>`;
}

function memberForms(visit: Visit, membership: Membership, { userId, role, name }: Member): Html {
  const { texts } = visit;
  const { id } = membership.organization;
  const hidden = html`<input type="hidden" name="id" value="${userId}">`;
  return html`${form(visit, {
    action: visit.path('member-role', { id }),
    content: html`${hidden}${roleField(visit, membership, { id: `role-${userId}`, label: `${texts.role}: ${name}`, role })}
<button class="link" aria-label="${texts.saveRole}: ${name}">${texts.saveRole}</button>`,
  })}
${form(visit, {
  action: visit.path('member-remove', { id }),
  content: html`${hidden}<button class="link" aria-label="${texts.remove}: ${name}">${texts.remove}</button>`,
})}`;
}

/** The roles that the member may give. */
function roleField(
  { context, texts }: Visit,
  membership: Membership,
  { id, label, role }: { readonly id: string; readonly label: string; readonly role: string },
): Html {
  const { settings } = context;
  const roles = Object.keys(settings.organizationsRoles).filter((each) =>
    maySetRole(settings, membership.role, each),
  );
  return html`<select id="${id}" name="role" aria-label="${label}">${roles.map(
    (each) =>
      html`<option value="${each}"${each === role && html` selected`}>${roleLabel(each, texts)}</option>`,
  )}</select>`;
}

async function invitationSection(
  visit: Visit,
  membership: Membership,
  problem: Outcome['problem'],
): Promise<Html | undefined> {
  if (!can(visit, membership, 'members:invite')) return undefined;
  const { context, texts, metadata } = visit;
  const { id } = membership.organization;
  const invitations = await context.store.invitations.list(id, new Date(metadata.nowMs));
  const items = invitations.map(({ id: invitationId, email, role }) => {
    const content = html`<input type="hidden" name="id" value="${invitationId}">
<button class="link" aria-label="${texts.revoke}: ${email}">${texts.revoke}</button>`;
    return html`<li><span>${email}<br><small>${roleLabel(role, texts)}</small></span>
${form(visit, { action: visit.path('invitation-revoke', { id }), content })}</li>`;
  });
  const email = field(
    { name: 'email', label: texts.emailAddress, type: 'email', autocomplete: 'off', value: visit.form.email },
    problem,
  );
  return html`<section aria-labelledby="invitations-title">
<h2 id="invitations-title">${texts.invitations}</h2>
${items.length > 0 && html`<ul class="items">${items}</ul>`}
${form(visit, {
  action: visit.path('invite', { id }),
  content: html`${email}
${roleField(visit, membership, { id: 'role', label: texts.role, role: 'member' })}
<button class="secondary">${texts.sendInvitation}</button>`,
})}
</section>`;
}
