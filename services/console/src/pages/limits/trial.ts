import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { filters } from '../../ui/form.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { details, quantity, time } from '../../ui/text.ts';
import { domainFilter, limitsPage } from './page.ts';
import { askLimiters, type Schemas } from './replicas.ts';

type Trial = Schemas['Trial'];
type RuleComparison = Trial['rules'][number];

/** The bound of a page. */
const maxRules = 200;

/** Rules on trial against those in force. */
export async function viewTrial(visit: Visit): Promise<View> {
  const domain = visit.query('domain');
  const query = { limit: maxRules, ...(domain !== undefined && { domain }) };
  const { values, problems } = await askLimiters(visit, (client) =>
    client.GET('/v1/trial', { params: { query } }),
  );
  const content = html`${filters([{ ...domainFilter, isSearch: true }], visit.url)}
${visit.liveRegion('trial', { everySeconds: 10 }, html`${problems}${comparison(visit, values)}`)}`;
  return limitsPage(visit, 'Trial', content);
}

function comparison(visit: Visit, reports: readonly Trial[]): Html {
  const active = reports.flatMap(({ trial }) => trial ?? []);
  const [trial] = active;
  if (trial === undefined)
    return emptyState(
      'No rules are on trial. Set spec.trial of a RateLimitConfig, or mode: Trial of a limit of an AccessPolicy.',
      'kubectl explain accesspolicies.spec.limits.mode',
    );
  const rules = [
    ...Map.groupBy(
      reports.flatMap((report) => report.rules),
      ({ rule }) => rule,
    ).values(),
  ].map((rows) => rows.reduce(addComparison));
  const sum = (name: 'dropped' | 'failed') =>
    reports.reduce((total, { notCompared }) => total + notCompared[name], 0);
  const versions = new Set(active.map(({ version }) => version));
  return html`<section class="card">${details({
    Version: [...versions].join(', '),
    Since: time(trial.since, visit.nowMs),
    Rules: trial.rules,
    'Not compared': html`${quantity(sum('dropped'), 'dropped')}, ${quantity(sum('failed'), 'failed')}`,
  })}</section>${table({
    caption: 'Rules on trial',
    rows: rules.sort((a, b) => countDifferences(b) - countDifferences(a)),
    url: visit.url,
    rowId: ({ rule }) => `trial-${rule}`,
    empty: emptyState('No request has matched a rule on trial yet.'),
    columns: [
      { title: 'Rule', cell: ({ rule }) => html`<code>${rule}</code>` },
      { title: 'Limit on trial', cell: ({ limit }) => limit },
      { title: 'Requests', isNumber: true, cell: ({ requests }) => quantity(requests, 'req') },
      { title: 'Would refuse', isNumber: true, cell: (row) => share(row.wouldRefuse, row.requests) },
      { title: 'Refused today', isNumber: true, cell: (row) => share(row.refused, row.requests) },
      { title: 'Newly refused', isNumber: true, cell: ({ newlyRefused }) => quantity(newlyRefused, 'req') },
      { title: 'Newly allowed', isNumber: true, cell: ({ newlyAllowed }) => quantity(newlyAllowed, 'req') },
      { title: 'Promote', cell: ({ domain, rule }) => promoteLink(domain, rule) },
    ],
  })}`;
}

function share(part: number, whole: number): Html {
  return quantity(whole === 0 ? 0 : (part / whole) * 100, '%');
}

function countDifferences({ newlyRefused, newlyAllowed }: RuleComparison): number {
  return newlyRefused + newlyAllowed;
}

function addComparison(a: RuleComparison, b: RuleComparison): RuleComparison {
  return {
    ...a,
    requests: a.requests + b.requests,
    wouldRefuse: a.wouldRefuse + b.wouldRefuse,
    refused: a.refused + b.refused,
    newlyRefused: a.newlyRefused + b.newlyRefused,
    newlyAllowed: a.newlyAllowed + b.newlyAllowed,
  };
}

function promoteLink(domain: string, rule: string): Html {
  const query = new URLSearchParams({ domain }).toString();
  return html`<a class="button" href="/limits/trial/promote?${query}" aria-label="Promote ${rule}">Promote</a>`;
}
