import { type Html, html } from '@tollgate/kit/html';
import { operatorPage } from '@tollgate/kit/operator-page';
import type { Explanation } from '../ext-authz/explain.ts';
import { type QuestionField, questionFields } from './explain-question.ts';

/** Result of the form, shown below it. Undefined before it was sent. */
export type ExplainOutcome = { readonly explanation: Explanation } | { readonly problem: string } | undefined;

/** The form with the values of the query, and the explanation. */
export function renderExplainPage(query: URLSearchParams, outcome: ExplainOutcome): string {
  const content = html`<p class="dim">How the auth server would decide a request. No counter changes. Do not enter credentials.</p>
<form action="/explain">
<div class="fields">${questionFields.map((field) => renderField(field, query.get(field.name)))}</div>
<button>Explain</button>
</form>
${outcome !== undefined && 'problem' in outcome && html`<p class="notice">${outcome.problem}</p>`}
${outcome !== undefined && 'explanation' in outcome && renderExplanation(outcome.explanation)}`;
  return operatorPage('Tollgate auth: explain', content);
}

function renderField(
  { name, label, hint, maxLength, isLong, isRequired }: QuestionField,
  value: string | null,
): Html {
  const id = `field-${name}`;
  const text = value ?? (name === 'method' ? 'GET' : '');
  const required = isRequired && html` required`;
  const input = isLong
    ? html`<textarea id="${id}" name="${name}" maxlength="${maxLength}" rows="3" cols="60">${text}</textarea>`
    : html`<input id="${id}" name="${name}" maxlength="${maxLength}" size="60" value="${text}"${required}>`;
  const note = hint !== undefined && html`<br><small class="dim">${hint}</small>`;
  return html`<label for="${id}">${label}</label><div>${input}${note}</div>`;
}

function renderExplanation(explanation: Explanation): Html {
  const { request, decision } = explanation;
  const { allowed, status, ...others } = decision;
  const isDenied = !allowed && status >= 400;
  const outcome = isDenied ? 'denied' : allowed ? 'allowed' : 'answered';
  const answer = html`<h2>Answer</h2>
<p><strong class="${isDenied ? 'False' : 'True'}">${status} ${outcome}</strong> ${request.method} ${request.host}${request.path}</p>
${definitions(others)}`;
  if (explanation.policies === undefined) return html`${answer}<p class="notice">${explanation.reason}</p>`;
  const { route, caller, policies } = explanation;
  return html`${answer}
<h2>Caller</h2>
${definitions(caller)}
<h2>Route</h2>
<p>Found by ${route.found_by}.${route.hits.length === 0 && ' No rule of a route takes the request.'}</p>
${route.hits.map(definitions)}
<h2>Policies</h2>
${policies.length > 1 && html`<p>All of them must allow the request.</p>`}
${policies.map(renderPolicy)}`;
}

type Policy = NonNullable<Explanation['policies']>[number];

function renderPolicy({ name, limits, ...facts }: Policy): Html {
  const cells = limits.map(
    ({ name: limit, by, mode, state, requests, unit, remaining, reset_seconds: reset }) =>
      html`<tr><td>${limit ?? ''}<td>${by.join(', ')}<td>${mode ?? 'Enforce'}<td>${state.replace('_', ' ')}<td>${requests !== undefined && `${requests} per ${(unit ?? '').toLowerCase()}`}<td>${remaining}<td>${reset !== undefined && `${reset} s`}</tr>`,
  );
  const table = html`<div class="table"><table>
<tr><th>Limit<th>By<th>Mode<th>State<th>Requests<th>Remaining<th>Reset in</tr>
${cells}</table></div>`;
  return html`<h3>${name}</h3>
${definitions(facts)}
${limits.length === 0 ? html`<p class="dim">No limits.</p>` : table}`;
}

/** The names and values of a record. */
function definitions(record: object): Html {
  const rows = Object.entries(record).map(
    ([name, value]) => html`<dt>${name.replaceAll('_', ' ')}</dt><dd>${toText(value)}</dd>`,
  );
  return html`<dl>${rows}</dl>`;
}

function toText(value: unknown): string | Html {
  if (typeof value !== 'object' || value === null) return String(value);
  const isTexts = Array.isArray(value) && value.every((item) => typeof item === 'string');
  if (isTexts) return value.join(', ');
  return html`<code>${JSON.stringify(value)}</code>`;
}
