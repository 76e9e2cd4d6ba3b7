import { type Html, html } from '@tollgate/kit/html';
import { orProblem } from '../../http/problems.ts';
import type { Visit } from '../../http/visit.ts';
import { card } from '../../ui/text.ts';
import { canReadObjects } from '../policies/stored.ts';

const maxObjects = 12;

/** Objects whose version in force a candidate may begin with; nothing without objects to read. */
export async function viewBeginnings(visit: Visit): Promise<Html | undefined> {
  if (!canReadObjects(visit)) return undefined;
  return orProblem(listObjects(visit), visit);
}

async function listObjects(visit: Visit): Promise<Html | undefined> {
  const params = { query: { limit: maxObjects } };
  const { objects, total } = await visit.services.xds((client) => client.GET('/v1/objects', { params }));
  if (objects.length === 0) return undefined;
  const links = objects.map(({ kind, namespace, name }) => {
    const query = new URLSearchParams({ kind, namespace, name }).toString();
    return html`<li><a href="/what-if?${query}">${namespace}/${name}</a> <span class="dim">${kind}</span></li>`;
  });
  const others =
    total > objects.length &&
    html`<p class="dim">${total - objects.length} others: <a href="/policies">Policies</a>, then “What if” on the page of one.</p>`;
  return card('Begin with limits in force', html`<ul>${links}</ul>${others}`);
}
