import { type Html, html } from '@tollgate/kit/html';
import { details } from './text.ts';

/**
 * Members of an object of an admin API, with the labels of `labels` and in their order. Empty ones
 * are left out.
 */
export function memberDetails(object: object, labels: Readonly<Record<string, string>>): Html {
  const values = new Map(Object.entries(object));
  return details(
    Object.fromEntries(Object.entries(labels).map(([name, label]) => [label, memberValue(values.get(name))])),
  );
}

/** Labels for the members without one: their names, as in the admin API. */
export function namesOfOthers(object: object, known: readonly string[]): Readonly<Record<string, string>> {
  const names = Object.keys(object).filter((name) => !known.includes(name));
  return Object.fromEntries(names.map((name) => [name, name]));
}

function memberValue(value: unknown): Html | string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return webLink(value);
  if (Object.keys(value).length === 0) return undefined;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string'))
    return html`${value.map((item: string) => html`<div>${item}</div>`)}`;
  return html`<pre>${JSON.stringify(value, null, 2)}</pre>`;
}

/** Only addresses of the web become links: other schemes, such as `javascript:`, stay text. */
function webLink(text: string): Html | string {
  const isWeb = /^https?:\/\//i.test(text) && URL.canParse(text);
  return isWeb ? html`<a href="${text}" rel="noreferrer">${text}</a>` : text;
}
