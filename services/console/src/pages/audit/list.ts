import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { filters } from '../../ui/form.ts';
import { emptyState } from '../../ui/messages.ts';
import { withQuery } from '../../ui/table.ts';
import { card, copyable, details, time } from '../../ui/text.ts';
import { actorName, type Entry, filterFields, payloadText, readEntries } from './entries.ts';
import { entryTable } from './entry-table.ts';
import { exportFormats } from './export.ts';

const pageSize = 50;

/** The audit log. The entry that is shown in full is in the URL. */
export async function viewAudit(visit: Visit): Promise<View> {
  const { entries, next } = await readEntries(visit, { limit: pageSize });
  return {
    title: 'Audit log',
    content: html`${filters(filterFields, visit.url)}
<div class="actions">${Object.values(exportFormats).map(
      ({ path, title }) =>
        html`<a class="button" href="${withQuery(new URL(path + visit.url.search, visit.url), { cursor: undefined, entry: undefined })}">${title}</a>`,
    )}</div>
${viewChosenEntry(entries, visit)}
${entryTable(
  {
    caption: 'Entries',
    nextCursor: next,
    empty:
      visit.url.search === ''
        ? 'The audit log has no entry yet.'
        : 'No entry matches these filters. Actions have exact names, such as login_failed.',
  },
  entries,
  visit,
)}`,
  };
}

/** The entry that the URL names, in full. New entries move older ones to later pages. */
function viewChosenEntry(entries: readonly Entry[], visit: Visit): Html | undefined {
  const id = visit.query('entry');
  if (id === undefined) return undefined;
  const entry = entries.find((one) => one.id === id);
  if (entry === undefined)
    return card(
      'Entry',
      emptyState('The entry is not on this page. Open older pages, or filter by its action or actor.'),
    );
  return html`<section class="card stack"><h2>${payloadText(entry, 'action') ?? 'Entry'}</h2>${details({
    Id: copyable(entry.id),
    Time: time(entry.created_at, visit.nowMs),
    Actor: actorName(entry),
    Address: entry.ip_address || undefined,
  })}<pre>${JSON.stringify(entry.payload, null, 2)}</pre>
<p><a href="${withQuery(visit.url, { entry: undefined })}">Close</a></p></section>`;
}
