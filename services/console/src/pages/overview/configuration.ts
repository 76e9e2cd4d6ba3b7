import { type Html, html } from '@tollgate/kit/html';
import { compareText } from '@tollgate/kit/text';
import type { Visit } from '../../http/visit.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { badge, elementId, quantity, time } from '../../ui/text.ts';

/** Clients of the xDS server with the configuration that each has, in an order that stays. */
export async function viewConfiguration(visit: Visit): Promise<Html> {
  const { clients, total } = await visit.services.xds((client) =>
    client.GET('/v1/clients', { params: { query: { limit: 100 } } }),
  );
  return table({
    caption: 'Configuration of the replicas',
    rows: clients.toSorted((a, b) => compareText(a.node + a.address, b.node + b.address)),
    url: visit.url,
    empty: emptyState('No limiter and no auth server is connected to the xDS server.'),
    rowId: ({ kind, node, address }) => elementId('client', kind, node, address),
    columns: [
      { title: 'Replica', cell: ({ node, address }) => node || address },
      { title: 'Service', cell: ({ kind }) => (kind === 'limiter' ? 'limiter' : 'auth server') },
      { title: 'State', cell: ({ state }) => badge(state, tones[state]) },
      { title: 'Version', cell: ({ version }) => version?.slice(0, 12) },
      { title: 'Lag', cell: ({ lagSeconds }) => quantity(lagSeconds, 's') },
      { title: 'Acknowledged', cell: (client) => time(client.acknowledgedAt, visit.nowMs) },
      { title: 'Refused because', cell: ({ rejection }) => rejection?.message },
    ],
    ...(total > clients.length && { note: html`${clients.length} of ${total} are shown.` }),
  });
}

const tones = { refusing: 'bad', behind: 'warn', current: 'ok' } as const;
