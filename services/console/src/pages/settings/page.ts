import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import type { ReplicaResult } from '../../services/session-clients.ts';
import { tabs } from '../../ui/layout.ts';

const pages = [
  { title: 'Settings', path: '/settings' },
  { title: 'Signing keys', path: '/settings/keys' },
];

/** A page of the area. */
export function settingsPage({ url }: Visit, title: string, content: Html): View {
  return { title, content: html`${tabs('Settings', pages, url.pathname)}${content}` };
}

/**
 * How many replicas of a service answered. One address may be that of several replicas, such as a
 * Service of Kubernetes, which gives the request to one of them.
 */
export function coverage(service: string, results: readonly ReplicaResult<unknown>[]): Html {
  const answered = results.filter(({ result }) => result.ok).length;
  const [first] = results;
  if (results.length > 1 || first === undefined)
    return html`<p class="dim">${service}: ${answered} of ${results.length} replicas answered.</p>`;
  return html`<p class="dim">${service}: ${answered} of 1 address answered, ${first.url}. If it is that of several replicas, the others were not asked.</p>`;
}
