import { nextCursor } from '@tollgate/admin-clients/clients';
import { html } from '@tollgate/kit/html';
import { actionButtons } from '../../http/actions.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { time } from '../../ui/text.ts';
import { newClientSet } from './actions.ts';
import { clientName, clientPath, clientState } from './client.ts';

const pageSize = '50';

/** All clients, newest first. The cursor of the URL is the number of a page. */
export async function viewClients(visit: Visit): Promise<View> {
  const query = { page: visit.query('cursor') ?? '1', per_page: pageSize };
  let next: string | undefined;
  const { clients } = await visit.services.auth(async (client) => {
    const result = await client.GET('/admin/oauth/clients', { params: { query } });
    next = nextCursor(result.response, 'page');
    return result;
  });
  return {
    title: 'OAuth clients',
    content: html`${actionButtons(newClientSet, undefined, visit)}
${table({
  caption: 'OAuth clients',
  rows: clients,
  url: visit.url,
  nextCursor: next,
  empty: emptyState('There are no OAuth clients yet.'),
  rowId: ({ client_id: id }) => `client-${id}`,
  columns: [
    {
      title: 'Client',
      cell: (client) => html`<a href="${clientPath(client)}">${clientName(client)}</a>`,
    },
    { title: 'State', cell: clientState },
    { title: 'Type', cell: (client) => client.client_type },
    { title: 'Scopes', cell: ({ scopes }) => scopes?.join(' ') },
    { title: 'Plan', cell: ({ plan }) => plan },
    {
      title: 'Registration',
      cell: ({ registration_type: type }) => (type === 'dynamic' ? 'by the client itself' : 'manual'),
    },
    { title: 'Created', cell: (client) => time(client.created_at, visit.nowMs) },
  ],
})}`,
  };
}
