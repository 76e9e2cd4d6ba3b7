import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { filters } from '../../ui/form.ts';
import { withQuery } from '../../ui/table.ts';
import { copyable, details, time } from '../../ui/text.ts';
import { actorName, type Entry, filterFields, payloadText, readEntries } from './entries.ts';
import { entryTable } from './entry-table.ts';
import { exportFormats } from './export.ts';

const pageSize = 50;

/** The audit log. The entry that is shown in full is in the URL. */
export async function viewAudit(visit: Visit): Promise<View> {
  const { entries, next } = await readEntries(visit, { limit: pageSize });
  const open = entries.find(({ id }) => id === visit.query('entry'));
  return {
    title: 'Audit log',
    content: html`${filters(filterFields, visit.url)}
<div class="actions">${Object.values(exportFormats).map(
      ({ path, title }) =>
        html`<a class="button" href="${withQuery(new URL(path + visit.url.search, visit.url), { cursor: undefined, entry: undefined })}">${title}</a>`,
    )}</div>
${open !== undefined && entryInFull(open, visit)}
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

function entryInFull(entry: Entry, visit: Visit): Html {
  return html`<section class="card stack"><h2>${payloadText(entry, 'action') ?? 'Entry'}</h2>${details({
    Id: copyable(entry.id),
    Time: time(entry.created_at, visit.nowMs),
    Actor: actorName(entry),
    Address: entry.ip_address || undefined,
  })}<pre>${JSON.stringify(entry.payload, null, 2)}</pre>
<p><a href="${withQuery(visit.url, { entry: undefined })}">Close</a></p></section>`;
}
