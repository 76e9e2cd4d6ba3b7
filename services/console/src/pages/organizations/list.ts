import { html } from '@tollgate/kit/html';
import { actionButtons } from '../../http/actions.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { type FilterField, filters, readFilters } from '../../ui/form.ts';
import { limitText } from '../../ui/limit-fields.ts';
import { emptyState } from '../../ui/messages.ts';
import { type Column, table } from '../../ui/table.ts';
import { time } from '../../ui/text.ts';
import { newOrganizationSet } from './actions.ts';
import { type Organization, organizationPath } from './organization.ts';

const pageSize = '50';

/** Their names are those of the admin API. */
const fields: readonly FilterField[] = [
  { name: 'slug', label: 'Slug', placeholder: 'payments', isSearch: true },
  { name: 'plan', label: 'Plan', placeholder: 'pro' },
  { name: 'user_id', label: 'Id of a member', placeholder: '8fba2b4c-…' },
  { name: 'without_owner', label: 'Owner', choices: { '': 'Any', false: 'Has an owner', true: 'None' } },
];

/** The list of organizations: filters and cursor are in the URL. */
export async function viewOrganizations(visit: Visit): Promise<View> {
  const query = { ...readFilters(fields, visit.url), limit: pageSize };
  const { organizations, pagination } = await visit.services.auth((client) =>
    client.GET('/admin/organizations', { params: { query } }),
  );
  return {
    title: 'Organizations',
    content: html`${actionButtons(newOrganizationSet, undefined, visit)}${filters(fields, visit.url)}
${table({
  caption: 'Organizations',
  columns: columns(visit.nowMs),
  rows: organizations,
  empty: emptyState(
    visit.url.search === ''
      ? 'There are no organizations yet. Create one here, or let users do so at the hosted pages.'
      : 'No organization matches these filters. They compare whole values.',
  ),
  url: visit.url,
  nextCursor: pagination.next_cursor,
  rowId: ({ id }) => `organization-${id}`,
})}`,
  };
}

function columns(nowMs: number): readonly Column<Organization>[] {
  return [
    { title: 'Name', cell: (each) => html`<a href="${organizationPath(each)}">${each.name}</a>` },
    { title: 'Slug', cell: ({ slug }) => slug },
    { title: 'Plan', cell: ({ plan }) => plan },
    { title: 'Limit', cell: ({ limit }) => limitText(limit) },
    { title: 'Changed', cell: (each) => time(each.updated_at, nowMs) },
    { title: 'Created', cell: (each) => time(each.created_at, nowMs) },
  ];
}
