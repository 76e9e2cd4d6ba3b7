import { html } from '@tollgate/kit/html';
import { formatDescriptor } from '@tollgate/rules/descriptor-text';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { filters } from '../../ui/form.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { time } from '../../ui/text.ts';
import { descriptorFields } from './counter.ts';
import { descriptorId, descriptorLink } from './descriptor.ts';
import { domainFilter, limitsPage, listQuery } from './page.ts';
import { askLimiters, mergePages, type Schemas } from './replicas.ts';

const pageSize = 100;

const fields = [{ name: 'q', label: 'Key', placeholder: 'user=ann', isSearch: true }, domainFilter] as const;

/** Limiters list overrides in its order. */
function toListName({ domain, entries }: Schemas['Override']): string {
  return `${domain} ${formatDescriptor(entries)}`;
}

/** The overrides in force: with Redis, each replica has all of them. */
export async function viewOverrides(visit: Visit): Promise<View> {
  const query = { ...listQuery(visit), limit: pageSize };
  const { values, problems } = await askLimiters(visit, (client) =>
    client.GET('/v1/overrides', { params: { query } }),
  );
  const pages = values.map(({ overrides, next }) => ({ items: overrides, next }));
  const { items, next } = mergePages(pages, toListName, (one) => one);
  const mayChange = visit.can('limits/change');
  const content = html`${filters(fields, visit.url)}${problems}${table({
    caption: 'Overrides in force',
    rows: items,
    url: visit.url,
    nextCursor: next,
    rowId: (override) => descriptorId('override', override),
    empty: emptyState('No override is in force. Look up a counter to override its limit.'),
    columns: [
      { title: 'Key', cell: descriptorLink },
      { title: 'Domain', cell: (override) => override.domain },
      { title: 'Limit', isNumber: true, cell: ({ requestsPerUnit }) => requestsPerUnit },
      { title: 'Burst', isNumber: true, cell: ({ burst }) => burst },
      { title: 'Ends', cell: ({ until }) => time(until, visit.nowMs) },
      { title: 'Reason', cell: ({ reason }) => reason },
      { title: 'Set by', cell: ({ setBy }) => setBy },
      ...(mayChange
        ? [
            {
              title: 'Change',
              cell: (override: Parameters<typeof descriptorFields>[0]) =>
                html`<form method="post" action="/limits/override/end">${visit.formFields()}${descriptorFields(override)}<button>End</button></form>`,
            },
          ]
        : []),
    ],
  })}`;
  return limitsPage(visit, 'Overrides', content);
}
