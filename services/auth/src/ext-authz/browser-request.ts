import type { Settings } from '../config/settings.ts';
import { isSecure } from '../http/cookies.ts';
import type { AuthzRequest } from './request.ts';

/** The parts of a request that say how a browser sends it. */
export type BrowserRequest = Pick<AuthzRequest, 'method' | 'host' | 'headers'>;

type OriginSettings = Pick<Settings, 'apiExternalUrl'>;

const loopbackHost = /^(?:localhost|.*\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * The origin of the application that a request is for. Undefined for a host that is none, and for
 * one whose cookies would not be protected: without https, only those of this machine are.
 */
export function requestOrigin(host: string, settings: OriginSettings): string | undefined {
  const url = URL.parse(`${isSecure(settings) ? 'https' : 'http'}://${host}`);
  if (url === null || host === '' || url.href !== `${url.origin}/`) return undefined;
  return isSecure(settings) || loopbackHost.test(url.hostname) ? url.origin : undefined;
}

const htmlType = /(?:^|[,\s])text\/html(?:[,;\s]|$)/i;

/** Whether a browser wants to show a page: it can go to another one instead. */
export function isNavigation({ method, headers }: BrowserRequest): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const { accept = '', upgrade, 'sec-fetch-mode': mode = 'navigate' } = headers;
  return upgrade === undefined && mode === 'navigate' && htmlType.test(accept);
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Whether another site may have sent a request that changes something: browsers add cookies to it.
 * A handshake of a WebSocket opens a connection that does, and can read.
 *
 * @see https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header
 */
export function mayBeCrossSite({ method, host, headers }: BrowserRequest, settings: OriginSettings): boolean {
  const { upgrade, origin, 'sec-fetch-site': site } = headers;
  if (safeMethods.has(method) && upgrade === undefined) return false;
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  return origin === undefined || origin !== requestOrigin(host, settings);
}
