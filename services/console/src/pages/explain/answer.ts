import type { AuthSchemas } from '@tollgate/admin-clients/clients';
import { type Html, html } from '@tollgate/kit/html';
import { isMapping } from '@tollgate/rules/resource-fields';
import type { Visit } from '../../http/visit.ts';
import { limitBar } from '../../ui/charts.ts';
import { emptyState } from '../../ui/messages.ts';
import { type Column, table } from '../../ui/table.ts';
import { badge, card, copyable, details, quantity, time } from '../../ui/text.ts';
import { policyLink } from '../policies/stored.ts';

type Fields = Readonly<Record<string, unknown>>;

/** How a request would be decided: route, caller, policies with their limits, and the answer. */
export function viewAnswer(explanation: AuthSchemas['CheckExplanation'], visit: Visit): Html {
  const { request, reason, route, caller, policies, decision } = explanation;
  const isAllowed = decision.allowed === true;
  return html`${card(
    'Answer',
    details({
      Answer: badge(isAllowed ? 'allowed' : 'denied', isAllowed ? 'ok' : 'bad'),
      Status: toText(decision.status),
      Error: toText(decision.error_code),
      Message: toText(decision.message),
      Reason: reason,
      Logged: visit.query('logged'),
      Request: `${toText(request.method)} ${toText(request.host)}${toText(request.path)}`,
      'To the upstream': headerLines(decision.upstream_headers),
      'To the client': headerLines(decision.headers),
      Link: copyable(visit.url.href),
    }),
  )}
<div class="grid">${route !== undefined && routeCard(route)}${caller !== undefined && card('Caller', details(toDetails(caller)))}</div>
${policies?.map((policy, index) => policyCards(policy, index, visit))}`;
}

function headerLines(headers: unknown): Html | undefined {
  const lines = Object.entries(toFields(headers)).map(([name, value]) => `${name}: ${toText(value)}`);
  return lines.length === 0 ? undefined : html`<pre>${lines.join('\n')}</pre>`;
}

function routeCard({ found_by: foundBy, hits }: Fields): Html {
  const routes = toList(hits).map((hit) => {
    const section = hit.section_name === undefined ? '' : `, section ${toText(hit.section_name)}`;
    return html`<li>${toText(hit.kind)} ${toText(hit.namespace)}/${toText(hit.name)}${section} ${
      hit.problem !== undefined && badge(String(hit.problem), 'warn')
    }<div class="dim">hosts ${toText(hit.hosts)}; gateways ${toText(hit.gateways)}</div></li>`;
  });
  return card(
    'Route',
    details({
      'Found by': toText(foundBy),
      Routes: routes.length === 0 ? 'none takes the request' : html`<ul>${routes}</ul>`,
    }),
  );
}

function policyCards({ limits, ...policy }: Fields, index: number, visit: Visit): Html {
  const name = String(policy.name);
  const isAllowed = policy.allows === true;
  return html`${card(
    'Policy',
    details({
      Policy: policyLink(visit, name),
      Reason: toText(policy.reason),
      Rule: toText(policy.rule),
      Access: describeAccess(toFields(policy.access)),
      Decision: html`${badge(isAllowed ? 'allows' : 'denies', isAllowed ? 'ok' : 'bad')} ${toText(policy.message)}`,
      Error: toText(policy.error_code),
    }),
  )}${table({
    caption: `Limits of ${name}`,
    rows: toList(limits),
    url: visit.url,
    rowId: ({ name }) => `limit-${index}-${toText(name)}`,
    empty: emptyState('No limit of the policy is for this request.'),
    columns: limitColumns(visit.nowMs),
  })}`;
}

/** `Authenticated; roles admin, support`. */
function describeAccess({ type, ...conditions }: Fields): string {
  const texts = Object.entries(conditions).map(([name, value]) => `${name} ${toText(value)}`);
  return [toText(type), ...texts].join('; ');
}

const states: Readonly<Record<string, Html>> = {
  ok: badge('ok', 'ok'),
  exceeded: badge('exceeded', 'bad'),
  failed_closed: badge('limiter does not answer: denied', 'bad'),
  failed_open: badge('limiter does not answer: allowed', 'warn'),
};

const limitColumns = (nowMs: number): readonly Column<Fields>[] => [
  { title: 'Limit', cell: ({ name }) => toText(name) },
  { title: 'State', cell: ({ state }) => states[String(state)] ?? badge(String(state).replaceAll('_', ' ')) },
  { title: 'By', cell: ({ by }) => toText(by) },
  { title: 'Mode', cell: ({ mode }) => toText(mode) ?? 'Enforce' },
  {
    title: 'Limit',
    cell: ({ requests, unit }) =>
      requests === undefined ? undefined : `${toText(requests)} per ${String(unit).toLowerCase()}`,
  },
  { title: 'Used', cell: usedCell },
  {
    title: 'Remaining',
    isNumber: true,
    cell: ({ remaining }) => (typeof remaining === 'number' ? quantity(remaining, 'hits') : undefined),
  },
  {
    title: 'Resets',
    cell: ({ reset_seconds: seconds }) =>
      typeof seconds === 'number' ? time(nowMs + seconds * 1000, nowMs) : undefined,
  },
];

function usedCell({ requests, remaining }: Fields): Html | undefined {
  if (typeof requests !== 'number' || typeof remaining !== 'number') return undefined;
  const used = Math.max(0, requests - remaining);
  return html`${limitBar({ used, limit: requests })}${used} of ${requests}`;
}

function toDetails(fields: Fields): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name.replaceAll('_', ' '), toText(value)]),
  );
}

/** Objects are shown as JSON. */
function toText(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const toFields = (value: unknown): Fields => (isMapping(value) ? value : {});

const toList = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(toFields) : []);
