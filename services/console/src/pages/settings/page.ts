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
  const [first] = results;
  if (results.length > 1 || first === undefined) return replicaCount(service, results);
  return html`<p class="dim">${service}: ${countAnswers(results)} of 1 address answered, ${first.url}. If it is that of several replicas, the others were not asked.</p>`;
}

/** How many replicas of the auth server answered. They have a setting, beside its URL. */
export function authCoverage(results: readonly ReplicaResult<unknown>[], visit: Visit): Html {
  if (asksAllAuthServers(results, visit)) return replicaCount('Auth server', results);
  return html`${coverage('Auth server', results)}<p class="dim">To ask all, set <code>CONSOLE_AUTH_REPLICA_URLS</code> of the console.</p>`;
}

/** Whether no replica of the auth server can be behind the address of another one. */
export function asksAllAuthServers(
  results: readonly ReplicaResult<unknown>[],
  { context: { settings } }: Visit,
): boolean {
  return results.length > 1 || settings.authReplicaUrls.length > 0;
}

function replicaCount(service: string, results: readonly ReplicaResult<unknown>[]): Html {
  return html`<p class="dim">${service}: ${countAnswers(results)} of ${results.length} replicas answered.</p>`;
}

function countAnswers(results: readonly ReplicaResult<unknown>[]): number {
  return results.filter(({ result }) => result.ok).length;
}
