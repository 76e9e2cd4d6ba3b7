import { type Html, html } from '@tollgate/kit/html';
import { actionButtons, actionColumn } from '../../http/actions.ts';
import { orProblem } from '../../http/problems.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { limitText } from '../../ui/limit-fields.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { badge, copyable, details, time } from '../../ui/text.ts';
import { userLink } from '../users/user.ts';
import { organizationSet } from './actions.ts';
import { type Organization, organizationPath, readOrganization } from './organization.ts';

const pageSize = '50';

/** One organization. */
export async function viewOrganization(visit: Visit): Promise<View> {
  const id = visit.param('id');
  const [organization, members, domains] = await Promise.all([
    readOrganization(visit),
    orProblem(viewMembers(visit, id), visit),
    orProblem(viewDomains(visit, id), visit),
  ]);
  return {
    title: organization.name,
    content: html`${actionButtons(organizationSet, organization, visit)}<div class="grid">${profile(organization, visit)}
<section class="card stack"><div><h2>Metadata</h2><pre>${JSON.stringify(organization.metadata, null, 2)}</pre></div></section></div>
${members}${domains}`,
  };
}

function profile(organization: Organization, visit: Visit): Html {
  const { id, slug, plan, limit, domain_role: domainRole } = organization;
  return html`<section class="card"><h2>Profile</h2>${details({
    Id: copyable(id),
    Slug: copyable(slug),
    Plan: plan ?? 'default',
    'Limit of all members': limitText(limit) ?? 'that of the plan',
    'Role by domain': domainRole ?? 'none: users do not join by their email domain',
    Created: time(organization.created_at, visit.nowMs),
    Changed: time(organization.updated_at, visit.nowMs),
  })}${visit.can('api-keys') && html`<p><a href="/api-keys?org_id=${id}">API keys of the organization</a></p>`}</section>`;
}

async function viewMembers(visit: Visit, id: string): Promise<Html> {
  const cursor = visit.query('cursor');
  const query = { limit: pageSize, ...(cursor !== undefined && { cursor }) };
  const { members, pagination } = await visit.services.auth((client) =>
    client.GET('/admin/organizations/{organization_id}/members', {
      params: { path: { organization_id: id }, query },
    }),
  );
  const base = organizationPath({ id });
  return table({
    caption: 'Members',
    rows: members,
    url: visit.url,
    nextCursor: pagination?.next_cursor,
    empty: emptyState('There are no members. Set one with the role owner.'),
    rowId: (member) => `member-${member.user_id}`,
    columns: [
      { title: 'User', cell: ({ user_id: id, email }) => userLink(visit, id, email || id) },
      { title: 'Name', cell: ({ name }) => name },
      { title: 'Role', cell: ({ role }) => role },
      { title: 'Since', cell: (member) => time(member.created_at, visit.nowMs) },
      ...actionColumn(visit, 'organizations', (member: { user_id: string; role: string }) => ({
        'Change role': `${base}/member?${new URLSearchParams({ user: member.user_id, role: member.role })}`,
        Remove: `${base}/members/${member.user_id}/remove`,
      })),
    ],
  });
}

async function viewDomains(visit: Visit, id: string): Promise<Html> {
  const { domains } = await visit.services.auth((client) =>
    client.GET('/admin/organizations/{organization_id}/domains', {
      params: { path: { organization_id: id } },
    }),
  );
  return table({
    caption: 'Email domains',
    rows: domains,
    url: visit.url,
    empty: emptyState(
      'There are no email domains. Add one here, or let members with the right do so at the hosted pages.',
    ),
    rowId: ({ domain }) => `domain-${domain}`,
    columns: [
      { title: 'Domain', cell: ({ domain }) => domain },
      { title: 'State', cell: ({ record }) => (record ? badge('not verified', 'warn') : badge('verified')) },
      { title: 'Verified', cell: (each) => time(each.verified_at, visit.nowMs) },
      {
        title: 'DNS record to set',
        cell: ({ record }) =>
          record && html`${record.type} ${copyable(record.name)}<br>${copyable(record.value)}`,
      },
      ...actionColumn(visit, 'organizations', ({ domain, record }: (typeof domains)[number]) => {
        const path = `${organizationPath({ id })}/domains/${encodeURIComponent(domain)}`;
        return { ...(record && { Verify: `${path}/verify` }), Remove: `${path}/remove` };
      }),
    ],
  });
}
