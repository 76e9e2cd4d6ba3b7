import type { Html } from '@tollgate/kit/html';
import { compareText } from '@tollgate/kit/text';
import type { Visit } from '../../http/visit.ts';
import type { Replica } from '../../live/live.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { badge, elementId, time } from '../../ui/text.ts';

/** All processes, in an order that does not change with their states: no row moves. */
export function viewReplicas(replicas: readonly Replica[], { url, nowMs }: Visit): Html {
  const order = ({ kind, url }: Replica) => `${kind} ${url}`;
  return table({
    caption: 'Replicas',
    rows: replicas.toSorted((a, b) => compareText(order(a), order(b))),
    url,
    empty: emptyState('No replica has been found yet.'),
    rowId: (replica) => elementId('replica', new URL(replica.url).host),
    columns: [
      { title: 'Address', cell: (replica) => new URL(replica.url).host },
      { title: 'Service', cell: ({ kind }) => kind },
      { title: 'State', cell: stateBadge },
      { title: 'Version', cell: ({ version }) => version },
      { title: 'Started', cell: ({ startedMs }) => time(startedMs, nowMs) },
      { title: 'Answered', cell: ({ answeredMs }) => time(answeredMs, nowMs) },
    ],
  });
}

function stateBadge({ failure, signals }: Replica): Html {
  if (failure !== undefined) return badge('does not answer', 'bad');
  return signals.length === 0 ? badge('healthy', 'ok') : badge('has a problem', 'warn');
}
