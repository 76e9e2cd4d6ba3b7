import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';

interface CookieOptions {
  readonly settings: Pick<Settings, 'apiExternalUrl'>;
  /** Default `Lax`. `None` needs https. */
  readonly sameSite?: 'Lax' | 'None';
  /** When absent, the cookie lasts until the browser closes. */
  readonly maxAgeSeconds?: number;
}

/**
 * The name with the prefix `__Host-`, which other hosts of the domain cannot set. Browsers accept
 * the prefix with https only.
 *
 * @see https://httpwg.org/http-extensions/draft-ietf-httpbis-rfc6265bis.html#name-the-__host-prefix
 */
function cookieName(name: string, settings: Pick<Settings, 'apiExternalUrl'>): string {
  return `${isSecure(settings) ? '__Host-' : ''}tollgate-${name}`;
}

/** Sets a cookie that scripts cannot read. */
export function setCookie(
  reply: FastifyReply,
  [name, value]: readonly [name: string, value: string],
  { settings, sameSite = 'Lax', maxAgeSeconds }: CookieOptions,
): void {
  const maxAge = maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`;
  const site = isSecure(settings) ? `${sameSite}; Secure` : 'Lax';
  reply.header(
    'set-cookie',
    `${cookieName(name, settings)}=${value}${maxAge}; Path=/; HttpOnly; SameSite=${site}`,
  );
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

function isSecure({ apiExternalUrl }: Pick<Settings, 'apiExternalUrl'>): boolean {
  return apiExternalUrl.startsWith('https:');
}
