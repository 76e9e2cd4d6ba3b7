import { html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { filters } from '../../ui/form.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { time } from '../../ui/text.ts';
import { descriptorFields } from './counter.ts';
import { descriptorId, descriptorLink } from './descriptor.ts';
import { limitsPage } from './page.ts';
import { askLimiters } from './replicas.ts';

/** The overrides in force: with Redis, each replica has all of them. */
export async function viewOverrides(visit: Visit): Promise<View> {
  const domain = visit.query('domain');
  const query = domain === undefined ? {} : { domain };
  const { values, problems } = await askLimiters(visit, (client) =>
    client.GET('/v1/overrides', { params: { query } }),
  );
  const byId = new Map(
    values.flatMap(({ overrides }) => overrides.map((one) => [descriptorId('override', one), one] as const)),
  );
  const mayChange = visit.can('limits/change');
  const content = html`${filters([{ name: 'domain', label: 'Domain or policy', placeholder: 'shop', isSearch: true }], visit.url)}${problems}${table(
    {
      caption: 'Overrides in force',
      rows: [...byId.values()],
      url: visit.url,
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
    },
  )}`;
  return limitsPage(visit, 'Overrides', content);
}
