import { type Html, html } from '@tollgate/kit/html';
import { errors } from '../../errors.ts';
import { type ActionSet, creationSet } from '../../http/actions.ts';
import type { Visit } from '../../http/visit.ts';
import { field } from '../../ui/fields.ts';
import { readText } from '../../ui/form.ts';
import { jsonField, readJsonField } from '../../ui/json-field.ts';
import { planFields, readPlan } from '../../ui/limit-fields.ts';
import { domainActions } from './domain-actions.ts';
import { type Organization, organizationPath, readOrganization } from './organization.ts';

/** Actions on one organization. */
export const organizationSet: ActionSet<Organization> = {
  route: '/organizations/:id',
  permission: 'organizations',
  read: readOrganization,
  name: ({ name }) => name,
  path: organizationPath,
  actions: [
    {
      path: 'change',
      button: 'Change',
      question: ({ name }) => `All members of ${name} share its plan and limit.`,
      fields: (organization) =>
        html`${field({
          name: 'name',
          label: 'Name',
          value: organization.name,
          isRequired: true,
        })}${field({
          name: 'slug',
          label: 'Slug',
          value: organization.slug,
          hint: 'Links with the old slug no longer work.',
          isRequired: true,
        })}${planFields('all members together', organization)}${field({
          name: 'domain_role',
          label: 'Role of users who join by their email domain',
          value: organization.domain_role ?? '',
          placeholder: 'member',
          hint: 'Empty: users do not join by their email domain.',
        })}${jsonField({ name: 'metadata', label: metadataLabel, value: organization.metadata })}`,
      run: async ({ visit, subject: { id }, form }) => {
        const { plan = '', limit = {} } = readPlan(form);
        const text = (name: string) => readText(form, name);
        const body = {
          ...{ name: text('name'), slug: text('slug'), domain_role: text('domain_role'), plan, limit },
          metadata: readJsonField(form, 'metadata', metadataLabel),
        };
        await visit.services.auth((client) =>
          client.PUT('/admin/organizations/{organization_id}', {
            params: { path: { organization_id: id } },
            body,
          }),
        );
        return 'The organization is changed.';
      },
    },
    {
      path: 'member',
      button: 'Set a member',
      question: ({ name }) => `The user becomes a member of ${name}, or gets another role.`,
      fields: (_organization, visit) => memberFields(visit),
      run: async ({ visit, subject: { id }, form }) => {
        const userId = await findUserId(visit, readText(form, 'user'));
        const { email, role } = await visit.services.auth((client) =>
          client.PUT('/admin/organizations/{organization_id}/members/{user_id}', {
            params: { path: { organization_id: id, user_id: userId } },
            body: { role: readText(form, 'role') },
          }),
        );
        return `${email || userId} has the role ${role}.`;
      },
    },
    {
      path: 'members/:item/remove',
      button: 'Remove the member',
      isDangerous: true,
      question: ({ name }) => `The user loses the plan, limit and role that ${name} gives.`,
      run: async ({ visit, subject: { id }, item }) => {
        const params = { path: { organization_id: id, user_id: item } };
        await visit.services.auth((client) =>
          client.DELETE('/admin/organizations/{organization_id}/members/{user_id}', { params }),
        );
        return 'The member is removed.';
      },
    },
    ...domainActions,
    {
      path: 'delete',
      button: 'Delete',
      isDangerous: true,
      question: ({ name }) =>
        `${name} is deleted with its memberships, invitations, domains and API keys. Its users stay. This cannot be undone.`,
      confirmation: ({ name }) => name,
      run: async ({ visit, subject: { id, name } }) => {
        const params = { path: { organization_id: id } };
        await visit.services.auth((client) =>
          client.DELETE('/admin/organizations/{organization_id}', { params }),
        );
        return { notice: `${name} is deleted.`, path: '/organizations' };
      },
    },
  ],
};

const metadataLabel = 'Metadata';

/** The action on the list. */
export const newOrganizationSet = creationSet('/organizations', 'organizations', {
  button: 'Create an organization',
  question: () => 'Its owner manages members, and all members share the plan and the limit.',
  fields: () =>
    html`${field({ name: 'name', label: 'Name', isRequired: true })}${field({
      name: 'slug',
      label: 'Slug',
      placeholder: 'payments',
      hint: 'Unique, for URLs. Empty: one of the name.',
    })}${field({
      name: 'owner',
      label: 'Owner',
      placeholder: 'ada@example.com',
      hint: 'Id or email address of a user. Empty: none yet.',
    })}${planFields('all members together', {})}`,
  run: async ({ visit, form }) => {
    const slug = readText(form, 'slug');
    const owner = readText(form, 'owner');
    const body = {
      name: readText(form, 'name'),
      ...readPlan(form),
      ...(slug !== '' && { slug }),
      ...(owner !== '' && { owner_id: await findUserId(visit, owner) }),
    };
    const created = await visit.services.auth((client) => client.POST('/admin/organizations', { body }));
    return { notice: `${created.name} is created.`, path: organizationPath(created) };
  },
});

/** The link of a member fills them in. */
function memberFields(visit: Visit): Html {
  return html`${field({
    name: 'user',
    label: 'User',
    value: visit.query('user') ?? '',
    placeholder: 'ada@example.com',
    hint: 'Id or email address.',
    isRequired: true,
  })}${field({
    name: 'role',
    label: 'Role',
    value: visit.query('role') ?? 'member',
    hint: 'owner, admin, member, or a role of SVC_ORGANIZATIONS_ROLES.',
    isRequired: true,
  })}`;
}

/** The id of a user by id or email address. @throws AppError `invalid_value`; ServiceError */
async function findUserId(visit: Visit, text: string): Promise<string> {
  if (!text.includes('@')) return text;
  const query = { email: text, limit: '1' };
  const { users } = await visit.services.auth((client) => client.GET('/admin/users', { params: { query } }));
  const [user] = users;
  if (user === undefined)
    throw errors.invalid_value({ message: `No user has the email address ${text}. Nothing was changed.` });
  return user.id;
}
