import { type Html, html } from '@tollgate/kit/html';
import { formatDescriptor } from '@tollgate/rules/descriptor-text';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { limitBar, sparkline } from '../../ui/charts.ts';
import { filters } from '../../ui/form.ts';
import { emptyState } from '../../ui/messages.ts';
import { type Column, table } from '../../ui/table.ts';
import { badge, quantity, time } from '../../ui/text.ts';
import { getCapacity, type KeyRow, readKeys, readRefusals } from './activity.ts';
import { descriptorId, descriptorLink } from './descriptor.ts';
import { count, domainFilter, limitsPage, limitText } from './page.ts';

const everySeconds = 5;

/** The heaviest and the last refused keys, with how full their limits are. */
export async function viewKeys(visit: Visit): Promise<View> {
  const { keys, problems } = await readKeys(visit, visit.query('domain'));
  const shown = keys.filter((key) => isSelected(key, visit));
  const region = html`${problems}${table({
    caption: 'Keys of the last two minutes',
    columns: keyColumns(visit.nowMs),
    rows: shown,
    url: visit.url,
    rowId: (key) => descriptorId('key', key),
    empty:
      keys.length === 0
        ? emptyState(
            'No request was limited in the last two minutes. Send one to a limiter, or look up a counter.',
            'tollgate limits peek --domain shop user=ann',
          )
        : emptyState('No key matches these filters.'),
  })}`;
  const form = filters(
    [
      { name: 'q', label: 'Key or rule', placeholder: 'user=ann', isSearch: true },
      domainFilter,
      // The page of the rules leads to it.
      ...(visit.query('rule') === undefined ? [] : [{ name: 'rule', label: 'Rule' }]),
      {
        name: 'state',
        label: 'State',
        choices: { '': 'Any', over: 'Refused now', near: 'Near the limit', new: 'Newly limited' },
      },
    ],
    visit.url,
  );
  return limitsPage(visit, 'Limits', html`${form}${visit.liveRegion('keys', { everySeconds }, region)}`);
}

function isSelected(key: KeyRow, visit: Visit): boolean {
  const state = visit.query('state');
  const search = visit.query('q') ?? '';
  const rule = visit.query('rule');
  const text = `${formatDescriptor(key.entries)} ${key.counter?.rule ?? ''}`;
  return (
    text.includes(search) &&
    (rule === undefined || key.counter?.rule === rule) &&
    (state === undefined || (state === 'new' ? key.isNew : key.state === state))
  );
}

function keyColumns(nowMs: number): readonly Column<KeyRow>[] {
  return [
    { title: 'Key', cell: descriptorLink },
    { title: 'Domain', cell: ({ domain }) => domain },
    ...usageColumns,
    { title: 'Hits', isNumber: true, cell: hitsCell },
    { title: 'Refused', isNumber: true, cell: ({ refused }) => quantity(refused, 'times') },
    { title: 'Last refused', cell: ({ lastRefusedAt }) => time(lastRefusedAt, nowMs) },
  ];
}

/** How full the limit of a key is. */
export const usageColumns: readonly Column<KeyRow>[] = [
  { title: 'State', cell: stateBadge },
  { title: 'Used', cell: usedCell },
  { title: 'Limit', cell: ({ counter }) => counter && limitText(counter) },
];

function stateBadge({ state, isNew, counter }: KeyRow): Html {
  return html`${state === 'over' && badge('refused now', 'bad')}${state === 'near' && badge('near', 'warn')}${state === 'free' && badge('below limit')}
${isNew && badge('newly limited', 'warn')}${counter?.override !== undefined && badge('override')}${counter?.shadowMode === true && badge('shadow')}`;
}

function usedCell({ counter, state }: KeyRow): Html | undefined {
  if (counter === undefined) return undefined;
  const limit = getCapacity(counter);
  return html`${limitBar({ used: counter.count, limit, isRefusing: state === 'over' })}${count(counter.count)} of ${count(limit)}`;
}

/** The rate of now, and the hits of each minute of the last hour. */
function hitsCell({ rate, hitsByMinute }: KeyRow): Html {
  return html`${quantity(rate, '/s')}${hitsByMinute !== undefined && sparkline(hitsByMinute, 'Hits of each minute of the last hour')}`;
}

/** Refusals that a page shows; limiters keep more. */
const maxShown = 200;

/** Refusals as they happen, with the reason. */
export async function viewRefusals(visit: Visit): Promise<View> {
  const search = visit.query('q') ?? '';
  const limit = search === '' ? maxShown : undefined;
  const { values, problems } = await readRefusals(visit, visit.query('domain'), limit);
  const found = values.filter(({ entries, rule }) => `${formatDescriptor(entries)} ${rule}`.includes(search));
  const region = html`${problems}${table({
    caption: 'Refusals',
    rows: found.slice(0, maxShown),
    url: visit.url,
    empty: emptyState('Limiters remember no refusal that matches.'),
    ...(found.length >= maxShown && { note: html`The newest ${maxShown} are shown.` }),
    columns: [
      { title: 'Key', cell: descriptorLink },
      { title: 'Time', cell: (refusal) => time(refusal.time, visit.nowMs) },
      { title: 'Domain', cell: ({ domain }) => domain },
      {
        title: 'Reason',
        cell: ({ hits, requestsPerUnit, unit, rule }) =>
          html`${quantity(hits, hits === 1 ? 'hit' : 'hits')} over ${requestsPerUnit} per ${unit} of <code>${rule}</code>`,
      },
      {
        title: 'Answer',
        cell: ({ code }) =>
          code === 'OK' ? badge('allowed: shadow mode or quota') : badge('refused', 'bad'),
      },
    ],
  })}`;
  const form = filters(
    [{ name: 'q', label: 'Key or rule', placeholder: 'user=ann', isSearch: true }, domainFilter],
    visit.url,
  );
  return limitsPage(
    visit,
    'Refusals',
    html`${form}${visit.liveRegion('refusals', { everySeconds: 2 }, region)}`,
  );
}
