import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { tabs } from '../../ui/layout.ts';
import type { Schemas } from './replicas.ts';

const pages = [
  { title: 'Keys', path: '/limits' },
  { title: 'Domains', path: '/limits/domains' },
  { title: 'Refusals', path: '/limits/refusals' },
  { title: 'Overrides', path: '/limits/overrides' },
  { title: 'Trial', path: '/limits/trial' },
  { title: 'Counter', path: '/limits/counter' },
];

/** A page of the area. */
export function limitsPage({ url }: Visit, title: string, content: Html): View {
  return { title, content: html`${tabs('Limits', pages, url.pathname)}${content}` };
}

export const domainFilter = { name: 'domain', label: 'Domain or policy', placeholder: 'shop' } as const;

/** The parameters of a page of a list of the counter API. */
export function listQuery(visit: Visit) {
  const [search, after, domain] = [visit.query('q'), visit.query('cursor'), visit.query('domain')];
  return {
    ...(search !== undefined && { search }),
    ...(after !== undefined && { after }),
    ...(domain !== undefined && { domain }),
  };
}

/** `1,200` */
export function count(value: number): string {
  return value.toLocaleString('en');
}

/** `10 per minute`, or `5 at once`. */
export function limitText({
  requestsPerUnit,
  unit,
  burst,
  algorithm,
}: Pick<Schemas['Counter'], 'requestsPerUnit' | 'unit' | 'burst' | 'algorithm'>): string {
  if (algorithm === 'concurrency') return `${count(requestsPerUnit)} at once`;
  return `${count(requestsPerUnit)} per ${unit}${burst === undefined ? '' : `, burst ${count(burst)}`}`;
}
