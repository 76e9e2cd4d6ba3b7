import { html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { filters } from '../../ui/form.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { badge, quantity } from '../../ui/text.ts';
import { domainFilter, limitsPage, limitText, listQuery } from './page.ts';
import { askLimiters, mergePages, type Schemas } from './replicas.ts';

const pageSize = 100;

interface Counts {
  readonly hits: number;
  readonly nearLimit: number;
  readonly overLimit: number;
}

function addCounts(a: Counts, b: Counts): Counts {
  return {
    hits: a.hits + b.hits,
    nearLimit: a.nearLimit + b.nearLimit,
    overLimit: a.overLimit + b.overLimit,
  };
}

/** Domains of the rules in force; each access policy has one. */
export async function viewDomains(visit: Visit): Promise<View> {
  const { domain: _domain, ...query } = { ...listQuery(visit), limit: pageSize };
  const { values, problems } = await askLimiters(visit, (client) =>
    client.GET('/v1/domains', { params: { query } }),
  );
  const pages = values.map(({ domains, next }) => ({ items: domains, next }));
  const { items, next } = mergePages(
    pages,
    ({ domain }) => domain,
    (a, b) => ({ ...a, ...addCounts(a, b) }),
  );
  const content = html`${filters([{ name: 'q', label: 'Domain or policy', placeholder: 'shop', isSearch: true }], visit.url)}${problems}${table(
    {
      caption: 'Domains',
      rows: items,
      url: visit.url,
      nextCursor: next,
      rowId: ({ domain }) => `domain-${domain}`,
      empty: emptyState(
        'No domain has limits. Apply an AccessPolicy or a RateLimitConfig.',
        'kubectl get accesspolicies,ratelimitconfigs -A',
      ),
      columns: [
        {
          title: 'Domain',
          cell: ({ domain }) =>
            html`<a href="/limits/rules?${new URLSearchParams({ domain }).toString()}">${domain}</a>`,
        },
        { title: 'Limits', isNumber: true, cell: ({ limits }) => limits },
        ...countColumns,
      ],
    },
  )}`;
  return limitsPage(visit, 'Domains', content);
}

const countColumns = [
  { title: 'Hits', isNumber: true, cell: (counts: Counts | undefined) => quantity(counts?.hits, 'hits') },
  {
    title: 'Near',
    isNumber: true,
    cell: (counts: Counts | undefined) => quantity(counts?.nearLimit, 'hits'),
  },
  {
    title: 'Over',
    isNumber: true,
    cell: (counts: Counts | undefined) => quantity(counts?.overLimit, 'hits'),
  },
];

type ListedLimit = Schemas['ListedLimit'];

/** The limits of a domain, or those of all. */
export async function viewRules(visit: Visit): Promise<View> {
  const query = { ...listQuery(visit), limit: pageSize };
  const { values, problems } = await askLimiters(visit, (client) =>
    client.GET('/v1/limits', { params: { query } }),
  );
  const pages = values.map(({ limits, next }) => ({ items: limits, next }));
  const { items, next } = mergePages(pages, ({ path }) => path, mergeLimits);
  const domain = visit.query('domain');
  const form = filters(
    [{ name: 'q', label: 'Path', placeholder: 'user', isSearch: true }, domainFilter],
    visit.url,
  );
  const content = html`${form}${problems}${table({
    caption: domain === undefined ? 'Limits' : `Limits of ${domain}`,
    rows: items,
    url: visit.url,
    nextCursor: next,
    rowId: ({ path }) => `limit-${path}`,
    empty: emptyState('No limit matches.'),
    columns: [
      {
        title: 'Rule',
        cell: (limit) =>
          html`<a href="/limits?${new URLSearchParams({ domain: limit.domain, rule: limit.rule }).toString()}"><code>${limit.path}</code></a>`,
      },
      { title: 'Limit', cell: limitText },
      { title: 'Algorithm', cell: ({ algorithm }) => algorithm.replaceAll('_', ' ') },
      { title: 'Mode', cell: modeBadge },
      ...countColumns.map(({ cell, ...column }) => ({
        ...column,
        cell: ({ counts }: ListedLimit) => cell(counts),
      })),
    ],
    note: html`Hits since the start of each replica. Rules whose metrics have values of requests have none here.`,
  })}`;
  return limitsPage(visit, 'Limits in force', content);
}

function mergeLimits(a: ListedLimit, b: ListedLimit): ListedLimit {
  const counts = a.counts && b.counts ? addCounts(a.counts, b.counts) : (a.counts ?? b.counts);
  return { ...a, ...(counts && { counts }) };
}

function modeBadge({ shadowMode, quotaMode }: ListedLimit) {
  if (shadowMode) return badge('shadow');
  return badge(quotaMode ? 'quota' : 'enforced');
}
