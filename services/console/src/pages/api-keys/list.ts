import { html } from '@tollgate/kit/html';
import { actionButtons } from '../../http/actions.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { type FilterField, filters, readFilters } from '../../ui/form.ts';
import { emptyState } from '../../ui/messages.ts';
import { type Column, table } from '../../ui/table.ts';
import { time } from '../../ui/text.ts';
import { newKeySet } from './actions.ts';
import { type ApiKey, keyHint, keyPath, ownerLink, stateBadge } from './api-key.ts';

const pageSize = '50';

/** Their names are those of the admin API. */
const fields: readonly FilterField[] = [
  { name: 'last4', label: 'Last four characters', placeholder: '7d6c', isSearch: true },
  { name: 'prefix', label: 'Prefix', placeholder: 'tgk' },
  { name: 'user_id', label: 'Id of a user', placeholder: '8fba2b4c-…' },
  { name: 'org_id', label: 'Id of an organization', placeholder: '8fba2b4c-…' },
  { name: 'plan', label: 'Plan of the key', placeholder: 'pro' },
];

/** The list of API keys: filters and cursor are in the URL. */
export async function viewKeys(visit: Visit): Promise<View> {
  const query = { ...readFilters(fields, visit.url), limit: pageSize };
  const { api_keys: keys, pagination } = await visit.services.auth((client) =>
    client.GET('/admin/api-keys', { params: { query } }),
  );
  return {
    title: 'API keys',
    content: html`${actionButtons(newKeySet, undefined, visit)}${filters(fields, visit.url)}
${table({
  caption: 'API keys',
  columns: keyColumns(visit),
  rows: keys,
  empty: emptyState(
    visit.url.search === ''
      ? 'There are no API keys yet. Create one here.'
      : 'No API key matches these filters. They compare whole values.',
  ),
  url: visit.url,
  nextCursor: pagination.next_cursor,
  rowId: ({ id }) => `key-${id}`,
})}`,
  };
}

/** Columns of a table of keys. */
export function keyColumns(visit: Visit): readonly Column<ApiKey>[] {
  const { nowMs } = visit;
  return [
    { title: 'Name', cell: (key) => html`<a href="${keyPath(key)}">${key.name}</a>` },
    { title: 'Key', cell: keyHint },
    { title: 'State', cell: (key) => stateBadge(key, nowMs) },
    { title: 'Owner', cell: (key) => ownerLink(key, visit) },
    { title: 'Plan', cell: ({ plan }) => plan ?? undefined },
    { title: 'Last use', cell: (key) => time(key.last_used_at, nowMs) ?? 'never' },
    { title: 'Expires', cell: (key) => time(key.expires_at, nowMs) ?? 'never' },
    { title: 'Created', cell: (key) => time(key.created_at, nowMs) },
  ];
}
