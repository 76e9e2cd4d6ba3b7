import { type Html, html } from '@tollgate/kit/html';
import type { Visit } from '../../http/visit.ts';
import { emptyState } from '../../ui/messages.ts';
import { table, withQuery } from '../../ui/table.ts';
import { time } from '../../ui/text.ts';
import { actorName, type Entry, payloadText } from './entries.ts';

interface EntryTable {
  readonly caption: string;
  readonly empty: string;
  readonly nextCursor?: string | undefined;
}

/** Entries of the audit log. Each leads to the page that shows it in full. */
export function entryTable(
  { caption, empty, nextCursor }: EntryTable,
  entries: readonly Entry[],
  { url, nowMs }: Visit,
): Html {
  return table({
    caption,
    rows: entries,
    url,
    nextCursor,
    rowId: ({ id }) => `entry-${id}`,
    empty: emptyState(empty),
    columns: [
      {
        title: 'Action',
        cell: (entry) =>
          html`<a href="${linkTo(entry, url)}">${payloadText(entry, 'action') ?? 'unknown'}</a>`,
      },
      { title: 'Actor', cell: actorName },
      { title: 'Kind', cell: (entry) => payloadText(entry, 'actor_kind') },
      { title: 'Address', cell: ({ ip_address: address }) => address || undefined },
      { title: 'Time', cell: (entry) => time(entry.created_at, nowMs) },
    ],
  });
}

/** Keeps the filters of the log. */
function linkTo({ id, payload }: Entry, url: URL): string {
  const log = new URL('/audit', url);
  if (url.pathname === log.pathname) return withQuery(url, { entry: id });
  const { actor_id: actor } = payload;
  return withQuery(log, { entry: id, ...(typeof actor === 'string' && { actor_id: actor }) });
}
