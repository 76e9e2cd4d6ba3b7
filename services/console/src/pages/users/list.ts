import { html } from '@tollgate/kit/html';
import { isUuid } from '@tollgate/kit/text';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { ServiceError } from '../../services/session-clients.ts';
import { type FilterField, filters, readFilters } from '../../ui/form.ts';
import { emptyState } from '../../ui/messages.ts';
import { type Column, table } from '../../ui/table.ts';
import { time } from '../../ui/text.ts';
import { displayName, type User, userLink, userPlan, userState } from './user.ts';

const pageSize = '50';

const yesNo = { '': 'Any', true: 'Yes', false: 'No' };

const fields: readonly FilterField[] = [
  { name: 'q', label: 'Part of email, phone or name, or id', placeholder: 'ada@', isSearch: true },
  { name: 'provider', label: 'Provider', placeholder: 'google' },
  { name: 'role', label: 'Role', placeholder: 'authenticated' },
  { name: 'plan', label: 'Plan', placeholder: 'free' },
  { name: 'banned', label: 'Banned', choices: yesNo },
  { name: 'confirmed', label: 'Confirmed', choices: yesNo },
];

/** The list of users: filters, order and cursor are in the URL. */
export async function viewUsers(visit: Visit): Promise<View> {
  const { users, next } = await findUsers(visit);
  return {
    title: 'Users',
    content: html`${filters(fields, visit.url)}
${table({
  caption: 'Users',
  columns: columns(visit),
  rows: users,
  empty: emptyState(
    visit.url.search === ''
      ? 'There are no users yet. One signs up at the hosted page of the auth server.'
      : 'No user matches these filters.',
  ),
  url: visit.url,
  nextCursor: next,
  rowId: ({ id }) => `user-${id}`,
})}`,
  };
}

interface UserPage {
  readonly users: readonly User[];
  readonly next: string | undefined;
}

async function findUsers(visit: Visit): Promise<UserPage> {
  const id = visit.query('q')?.toLowerCase() ?? '';
  if (isUuid(id)) return findById(visit, id);
  const { users, pagination } = await visit.services.auth((client) =>
    client.GET('/admin/users', { params: { query: toQuery(visit) } }),
  );
  return { users, next: pagination?.next_cursor };
}

/** The other filters do not apply. */
async function findById(visit: Visit, id: string): Promise<UserPage> {
  const params = { path: { user_id: id } };
  try {
    const user = await visit.services.auth((client) => client.GET('/admin/users/{user_id}', { params }));
    return { users: [user], next: undefined };
  } catch (error) {
    if (error instanceof ServiceError && error.status === 404) return { users: [], next: undefined };
    throw error;
  }
}

/** The parameters of the auth server for those of the page. */
function toQuery(visit: Visit): Readonly<Record<string, string>> {
  const { q: _search, ...query } = readFilters(fields, visit.url);
  const [search, sort] = [visit.query('q'), visit.query('sort')];
  return {
    ...query,
    limit: pageSize,
    ...(sort !== undefined && { sort }),
    ...(search !== undefined && toSearch(search)),
  };
}

/** Shorter texts are part of most users: the search compares how values start. */
const minPartChars = 3;

/** Whole values and starts are found by an index, a part by one where pg_trgm is installed. */
function toSearch(text: string): Record<string, string> {
  if (/^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(text)) return { email: text };
  if (/^\+?\d{7,15}$/.test(text)) return { phone: text.replace('+', '') };
  return text.length < minPartChars ? { prefix: text } : { filter: text };
}

function columns(visit: Visit): readonly Column<User>[] {
  const { nowMs } = visit;
  return [
    { title: 'User', cell: (user) => userLink(visit, user.id, displayName(user)) },
    { title: 'State', cell: (user) => userState(user, nowMs) },
    { title: 'Role', cell: ({ role }) => role },
    { title: 'Plan', cell: userPlan },
    { title: 'Providers', cell: providersCell },
    { title: 'Last sign-in', cell: (user) => time(user.last_sign_in_at, nowMs) },
    { title: 'Created', sort: 'created_at', cell: (user) => time(user.created_at, nowMs) },
  ];
}

function providersCell({ identities }: User): string {
  return [...new Set(identities.map(({ provider }) => provider))].join(', ');
}
