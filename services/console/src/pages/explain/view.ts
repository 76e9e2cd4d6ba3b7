import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { field } from '../../ui/fields.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { badge, copyable, details, quantity } from '../../ui/text.ts';
import { readQuestion } from './question.ts';

type Fields = Readonly<Record<string, unknown>>;

/** How a request would be decided now, without counting it. */
export async function viewExplain(visit: Visit): Promise<View> {
  const question = readQuestion(visit);
  const answer =
    question === undefined
      ? emptyState(
          'Enter a request, or paste a line of the access log of Envoy. A counter by its descriptor is under Limits, Counter.',
        )
      : explained(
          await visit.services.auth((client) => client.POST('/admin/policies/explain', { body: question })),
          visit,
        );
  return { title: 'Explain', content: html`${askForm(visit)}${answer}` };
}

function askForm(visit: Visit): Html {
  const value = (name: string) => visit.query(name) ?? '';
  return html`<form class="card stack" method="post" action="/explain">${visit.formFields()}<div class="filters">
${field({ name: 'method', label: 'Method', value: value('method') || 'GET' })}
${field({ name: 'url', label: 'URL', value: value('url'), placeholder: 'https://api.example.com/orders' })}
${field({ name: 'as', label: 'As', value: value('as'), placeholder: 'user:<id>, key:<id> or client:<id>' })}
${visit.can('explain/credential') && field({ name: 'credential', label: 'Or access token or API key, which stays out of the link', type: 'password' })}
${field({ name: 'policy', label: 'Policy instead of the one found', value: value('policy'), placeholder: 'shop/orders' })}
${field({ name: 'address', label: 'Client address', value: value('address') })}
${field({ name: 'line', label: 'Or a line of the access log of Envoy', placeholder: '[…] "GET /orders HTTP/1.1" 403 …' })}
<button class="primary">Explain</button></div></form>`;
}

interface Explanation {
  readonly request: Fields;
  readonly reason?: string;
  readonly route?: Fields;
  readonly caller?: Fields;
  readonly policies?: readonly Fields[];
  readonly decision: Fields;
}

function explained({ request, reason, route, caller, policies, decision }: Explanation, visit: Visit): Html {
  const isAllowed = decision.allowed === true;
  return html`<section class="card"><h2>Answer</h2>${details({
    Answer: badge(isAllowed ? 'allowed' : 'denied', isAllowed ? 'ok' : 'bad'),
    Status: toText(decision.status),
    Error: toText(decision.error_code),
    Message: toText(decision.message),
    Reason: reason,
    Request: `${toText(request.method)} ${toText(request.host)}${toText(request.path)}`,
    Link: copyable(visit.url.href),
  })}</section>
<div class="grid">${route !== undefined && card('Route', route)}${caller !== undefined && card('Caller', caller)}</div>
${policies?.map((policy, index) => policyCards(policy, index, visit))}`;
}

function card(title: string, fields: Fields): Html {
  return html`<section class="card"><h2>${title}</h2>${details(
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name.replaceAll('_', ' '), toText(value)]),
    ),
  )}</section>`;
}

const states: Readonly<Record<string, Html>> = {
  ok: badge('ok', 'ok'),
  exceeded: badge('exceeded', 'bad'),
  failed_closed: badge('limiter does not answer: denied', 'bad'),
  failed_open: badge('limiter does not answer: allowed', 'warn'),
};

function policyCards({ limits, ...policy }: Fields, index: number, visit: Visit): Html {
  // Parsed boundary: the document describes a policy as an object.
  const rows = Array.isArray(limits) ? (limits as readonly Fields[]) : [];
  return html`${card('Policy', policy)}${table({
    caption: 'Limits of the policy',
    rows,
    url: visit.url,
    rowId: ({ name }) => `limit-${index}-${toText(name)}`,
    empty: emptyState('The policy has no limits.'),
    columns: [
      { title: 'Limit', cell: ({ name }) => toText(name) },
      {
        title: 'State',
        cell: ({ state }) => states[String(state)] ?? badge(String(state).replaceAll('_', ' ')),
      },
      { title: 'By', cell: ({ by }) => toText(by) },
      { title: 'Mode', cell: ({ mode }) => toText(mode) },
      {
        title: 'Limit',
        cell: ({ requests, unit }) =>
          (requests !== undefined && `${toText(requests)} per ${toText(unit)}`) || undefined,
      },
      { title: 'Remaining', isNumber: true, cell: ({ remaining }) => toNumber(remaining, 'hits') },
      { title: 'Resets in', isNumber: true, cell: (row) => toNumber(row.reset_seconds, 's') },
    ],
  })}`;
}

function toNumber(value: unknown, unit: string): Html | undefined {
  return typeof value === 'number' ? quantity(value, unit) : undefined;
}

/** Objects are shown as JSON. */
function toText(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
