import { hash } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import { cookieName, cookieNamespace, formatCookie } from '../http/cookies.ts';
import { isEqualSecret, type Randomness } from '../keys/secrets.ts';
import { sign } from './key.ts';

type CookieSettings = Pick<Settings, 'apiExternalUrl' | 'jwtSecret' | 'extAuthzCookieDomain'>;

/** All cookies of this server on hosts of applications. A comma may join repeated headers. */
const ownCookies = /(?:^|[;,])\s*(?:__Host-|__Secure-)?tollgate-(?:access|sign-in)=[^;,]*/g;

const secretBytes = 32;
const secretForm = /^[\w-]{43}$/;
const accessForm = /^([\w-]{43})\.([\w-]{43})$/;

/** A cookie of all hosts of a domain, which any of them can set. */
const domainCookie = `__Secure-${cookieNamespace}access`;

/** Reads a cookie. A comma is a part of a value, in which other sites could hide a cookie. */
function readCookie(header: string, name: string): string | undefined {
  if (!header.includes(cookieNamespace)) return undefined;
  const start = `${name}=`;
  const pair = header.split(';').find((part) => part.trimStart().startsWith(start));
  return pair?.trim().slice(start.length);
}

/** The domain whose hosts share a cookie, if a host is one of them. */
function sharedDomain(host: string, { extAuthzCookieDomain: domain }: CookieSettings): string | undefined {
  return domain !== '' && (host === domain || host.endsWith(`.${domain}`)) ? domain : undefined;
}

/**
 * Whether a cookie of a host, or of a domain that begins with a dot, is for another host.
 *
 * @param host in the form of `normalizeHost`
 */
export function isCookieOf(scope: string, host: string): boolean {
  return scope === host || (scope.startsWith('.') && `.${host}`.endsWith(scope));
}

/** A `Cookie` header without the cookies of this server. Undefined if it has none of them. */
export function withoutOwnCookies(header: string): string | undefined {
  if (!header.includes(cookieNamespace)) return undefined;
  const others = header.replaceAll(ownCookies, '');
  return others === header ? undefined : others.replace(/^[;,\s]+/, '');
}

/**
 * A new value of the cookie that identifies a user, and what sets it.
 *
 * @param host in the form of `normalizeHost`
 */
export function createAccessCookie(random: Randomness, host: string, settings: CookieSettings) {
  const secret = random.bytes(secretBytes).toString('base64url');
  // The signature saves the database from reads of made-up values.
  const value = `${secret}.${sign('access', secret, settings)}`;
  const domain = sharedDomain(host, settings);
  const name = domain === undefined ? cookieName('access', settings) : domainCookie;
  return {
    digest: digestOf(value),
    scope: domain === undefined ? host : `.${domain}`,
    header: formatCookie(name, value, { settings, domain }),
  };
}

/** Removes the cookie that identifies a user at a host. */
export function removeAccessCookie(host: string, settings: CookieSettings): string {
  const domain = sharedDomain(host, settings);
  const name = domain === undefined ? cookieName('access', settings) : domainCookie;
  return formatCookie(name, '', { settings, domain, maxAgeSeconds: 0 });
}

/** The cookie that identifies a user; undefined without one that this server has written. */
export function readAccessCookie(header: string, settings: CookieSettings): string | undefined {
  const own = readCookie(header, cookieName('access', settings));
  const value = own ?? (settings.extAuthzCookieDomain === '' ? undefined : readCookie(header, domainCookie));
  const [, secret = '', signature = ''] = accessForm.exec(value ?? '') ?? [];
  return secret !== '' && isEqualSecret(signature, sign('access', secret, settings)) ? value : undefined;
}

/** The secret of a browser that signs in. Tabs share it. */
export function readSignInSecret(header: string, settings: CookieSettings): string | undefined {
  const value = readCookie(header, cookieName('sign-in', settings));
  return value !== undefined && secretForm.test(value) ? value : undefined;
}

export function createSignInSecret(random: Randomness): string {
  return random.bytes(secretBytes).toString('base64url');
}

export function setSignInCookie(secret: string, lifeMs: number, settings: CookieSettings): string {
  return formatCookie(cookieName('sign-in', settings), secret, { settings, maxAgeSeconds: lifeMs / 1000 });
}

/** The form in which secrets of browsers, codes and cookies are stored and compared. */
export function digestOf(secret: string): string {
  return hash('sha256', secret, 'base64url');
}
