import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';

interface CookieOptions {
  readonly settings: Pick<Settings, 'apiExternalUrl'>;
  /** Default `Lax`. `None` needs https. */
  readonly sameSite?: 'Lax' | 'None';
  /** When absent, the cookie lasts until the browser closes. */
  readonly maxAgeSeconds?: number;
  /** Default: only the host. */
  readonly domain?: string | undefined;
}

/** The names of all cookies of this server have it, after the prefix. */
export const cookieNamespace = 'tollgate-';

/**
 * The name with the prefix `__Host-`, which other hosts of the domain cannot set. Browsers accept
 * the prefix with https only.
 *
 * @see https://httpwg.org/http-extensions/draft-ietf-httpbis-rfc6265bis.html#name-the-__host-prefix
 */
export function cookieName(name: string, settings: Pick<Settings, 'apiExternalUrl'>): string {
  return `${isSecure(settings) ? '__Host-' : ''}${cookieNamespace}${name}`;
}

/** Sets a cookie that scripts cannot read. */
export function setCookie(
  reply: FastifyReply,
  [name, value]: readonly [name: string, value: string],
  options: CookieOptions,
): void {
  reply.header('set-cookie', formatCookie(cookieName(name, options.settings), value, options));
}

/**
 * The value of `Set-Cookie` for a cookie that scripts cannot read.
 *
 * @param fullName with its prefix
 */
export function formatCookie(
  fullName: string,
  value: string,
  { settings, sameSite = 'Lax', maxAgeSeconds, domain }: CookieOptions,
): string {
  const maxAge = maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`;
  const site = isSecure(settings) ? `${sameSite}; Secure` : 'Lax';
  const scope = domain === undefined ? '' : `; Domain=${domain}`;
  return `${fullName}=${value}${maxAge}; Path=/; HttpOnly; SameSite=${site}${scope}`;
}

/** The first cookie with the name and form; undefined without one. */
export function readCookie(
  { headers }: FastifyRequest,
  { name, form, settings }: { readonly name: string; readonly form: RegExp } & CookieOptions,
): string | undefined {
  const fullName = cookieName(name, settings);
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [key = '', value = ''] = pair.trim().split('=', 2);
    if (key === fullName && form.test(value)) return value;
  }
  return undefined;
}

export function isSecure({ apiExternalUrl }: Pick<Settings, 'apiExternalUrl'>): boolean {
  return apiExternalUrl.startsWith('https:');
}
