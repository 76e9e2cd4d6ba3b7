import type { AccessSpec, PolicySpec } from '../definition/spec.ts';
import type { Access } from './access.ts';

/** Headers that tell navigations from other requests, and other sites from own ones. */
export const browserHeaders: readonly string[] = [
  ...['cookie', 'accept', 'accept-language', 'user-agent'],
  ...['origin', 'upgrade', 'sec-fetch-site', 'sec-fetch-mode'],
];

export function hasBrowser(access: Access): boolean {
  return access.type === 'Authenticated' && access.browser === 'Redirect';
}

/**
 * Reports what contradicts `browser: Redirect`. A browser that has signed in returns to the host
 * that it asked for: with a policy for every host, anyone could name a host of their own.
 */
export function checkBrowser(
  { credentials, issuers }: Pick<AccessSpec, 'credentials' | 'issuers'>,
  { hosts }: Pick<PolicySpec, 'hosts'>,
  report: (field: string, message: string) => void,
): void {
  if (hosts?.includes('*') === true)
    report('browser', 'cannot be Redirect for the host *: name the hosts that browsers may return to');
  if (credentials !== undefined && !credentials.includes('User'))
    report('browser', 'cannot be Redirect without User in credentials: who signs in is a user');
  if (issuers !== undefined && !issuers.includes('tollgate'))
    report('browser', 'cannot be Redirect without tollgate in issuers: who signs in is a user of Tollgate');
}
