import type { Download } from '../../http/downloads.ts';
import type { Visit } from '../../http/visit.ts';
import { actorName, type Entry, payloadText, readEntries } from './entries.ts';

/** Entries of a request; the most that the admin API has in one page. */
const chunkSize = 1000;

interface Format {
  readonly path: string;
  readonly title: string;
  readonly type: string;
  readonly head: string;
  readonly toLine: (entry: Entry) => string;
}

/** Columns of the CSV file. */
const columns: Readonly<Record<string, (entry: Entry) => string | undefined>> = {
  time: (entry) => entry.created_at,
  action: (entry) => payloadText(entry, 'action'),
  actor: actorName,
  actor_id: (entry) => payloadText(entry, 'actor_id'),
  actor_kind: (entry) => payloadText(entry, 'actor_kind'),
  address: (entry) => entry.ip_address,
  id: (entry) => entry.id,
  payload: (entry) => JSON.stringify(entry.payload),
};

/** All files that the log can be saved as. */
export const exportFormats = {
  csv: {
    path: '/audit/export.csv',
    title: 'Save as CSV',
    type: 'text/csv; charset=utf-8',
    head: `${Object.keys(columns).join()}\r\n`,
    toLine: (entry) =>
      `${Object.values(columns)
        .map((read) => csvField(read(entry) ?? ''))
        .join()}\r\n`,
  },
  jsonLines: {
    path: '/audit/export.jsonl',
    title: 'Save as JSON lines',
    type: 'application/jsonl; charset=utf-8',
    head: '',
    toLine: (entry) => `${JSON.stringify(entry)}\n`,
  },
} as const satisfies Readonly<Record<string, Format>>;

/** The entries that match the filters of the URL, as a file. */
export async function exportEntries(visit: Visit, format: Format): Promise<Download> {
  // The first page is read before the response begins, so that a refusal is a page with the reason.
  const first = await readEntries(visit, { limit: chunkSize });
  return {
    type: format.type,
    fileName: `audit-${new Date(visit.nowMs).toISOString().slice(0, 10)}${format.path.slice(format.path.lastIndexOf('.'))}`,
    content: writeEntries(visit, format, first),
  };
}

async function* writeEntries(
  visit: Visit,
  { head, toLine }: Format,
  first: Awaited<ReturnType<typeof readEntries>>,
): AsyncGenerator<string> {
  yield head;
  let page = first;
  for (;;) {
    yield page.entries.map(toLine).join('');
    if (page.next === undefined) return;
    page = await readEntries(visit, { limit: chunkSize, cursor: page.next });
  }
}

/** A field of RFC 4180. An apostrophe keeps spreadsheets from running a formula. */
function csvField(text: string): string {
  const safe = /^\s*[=+\-@]|^[\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
