import { areas } from '../../../services/console/src/pages/registry.ts';
import { limitQueries } from './limits.ts';
import { recordIds } from './records.ts';

/** Ids for the parameters of routes, by the first part of their path. */
const ids: Readonly<Record<string, string>> = {
  users: recordIds.user,
  organizations: recordIds.organization,
  'api-keys': recordIds.apiKey,
  'oauth-clients': recordIds.client,
};

const { domain, descriptor, host } = limitQueries;
const counter = `?${new URLSearchParams({ domain, descriptor })}`;

/** Parameters of pages that need some. */
const queries: Readonly<Record<string, string>> = {
  '/limits/counter': counter,
  '/limits/reset': counter,
  '/explain': `?${new URLSearchParams({ url: host, as: `user:${recordIds.user}` })}`,
};

/** Searches and filters of users. */
const userQueries: readonly string[] = [
  ...['q=user123', 'q=ser123%40exam', 'q=user1%40example.com', `q=${recordIds.user}`, 'q=491500000030'],
  ...['q=missing', 'plan=gold', 'role=support', 'provider=google', 'provider=figma', 'banned=true'],
  ...['confirmed=false', 'confirmed=true&banned=false&q=e.com', 'sort=created_at+asc'],
];

/** Searches and filters, and the positions of long lists. */
const searches: readonly string[] = [
  ...userQueries.map((query) => `/users?${query}`),
  ...['/organizations?plan=pro', `/organizations?user_id=${recordIds.user}`],
  '/organizations?without_owner=true',
  ...['/api-keys?last4=c4ca', '/api-keys?plan=pro', `/api-keys?user_id=${recordIds.user}`],
  ...['/audit?action=token_refreshed', '/audit?action=nothing', `/audit?actor_id=${recordIds.user}`],
  ...['/audit?kind=administrator', `/limits?q=${domain}`, `/limits?domain=${domain}`],
  ...['/limits?state=over', '/limits/rules?q=r7', `/limits/rules?domain=${domain}`],
  ...[`/limits/domains?q=${domain}`, '/limits/refusals?q=r0', '/policies?accepted=false'],
  ...['/policies?kind=AccessPolicy', '/policies?find=app-00777', '/policies?namespace=bench'],
];

/** Paths of all pages of the registry, and searches. Areas without rows have only their lists. */
export function pagePaths(): readonly string[] {
  const pages = areas.flatMap(({ pages }) => pages.map(({ path }) => path));
  return [...pages.flatMap((route) => fillParameters(route) ?? []), ...searches];
}

function fillParameters(route: string): string | undefined {
  if (!route.includes(':')) return route + (queries[route] ?? '');
  const [, area = ''] = route.split('/');
  if (area === 'policies') return route.replace(':kind/:namespace/:name', limitQueries.object);
  if (area === 'identity-providers') return route.replaceAll(/:\w+/g, providerId);
  const id = ids[area];
  return id === undefined ? undefined : route.replaceAll(/:\w+/g, id);
}

/** A custom identity provider. */
export const providerId = 'custom:forum';
