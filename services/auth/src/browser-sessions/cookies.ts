import { hash } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import type { Randomness } from '../keys/secrets.ts';
import { isSignature, sign } from './key.ts';

type CookieSettings = Pick<Settings, 'apiExternalUrl' | 'jwtSecret'>;

/** Cookies of an application's host, by what they are for. */
type CookieKind = 'access' | 'sign-in';

/** All cookies of this server on hosts of applications. A comma may join repeated headers. */
const ownCookies = /(?:^|[;,])\s*(?:__Host-|__Secure-)?tollgate-(?:access|sign-in)=[^;,]*/g;
const ownName = 'tollgate-';

const secretBytes = 32;
const secretForm = /^[\w-]{43}$/;
const accessForm = /^([\w-]{43})\.([\w-]{43})$/;

export function isSecure({ apiExternalUrl }: Pick<Settings, 'apiExternalUrl'>): boolean {
  return apiExternalUrl.startsWith('https:');
}

/** The prefix `__Host-` binds a cookie to its host: others of the domain cannot set it. */
function cookieName(kind: CookieKind, settings: CookieSettings): string {
  return `${isSecure(settings) ? '__Host-' : ''}${ownName}${kind}`;
}

/** A value of `Set-Cookie`. */
function setCookie(
  kind: CookieKind,
  value: string,
  { settings, maxAgeSeconds }: { readonly settings: CookieSettings; readonly maxAgeSeconds?: number },
): string {
  const age = maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`;
  const secure = isSecure(settings) ? '; Secure' : '';
  return `${cookieName(kind, settings)}=${value}${age}; Path=/; HttpOnly; SameSite=Lax${secure}`;
}

function readCookie(header: string, kind: CookieKind, settings: CookieSettings): string | undefined {
  if (!header.includes(ownName)) return undefined;
  const start = `${cookieName(kind, settings)}=`;
  const pair = header.split(/[;,]/).find((part) => part.trimStart().startsWith(start));
  return pair?.trim().slice(start.length);
}

/** A `Cookie` header without the cookies of this server. Undefined if it has none of them. */
export function withoutOwnCookies(header: string): string | undefined {
  if (!header.includes(ownName)) return undefined;
  const others = header.replaceAll(ownCookies, '');
  return others === header ? undefined : others.replace(/^[;,\s]+/, '');
}

/** A new value of the cookie that identifies a user, and what sets and removes it. */
export function createAccessCookie(random: Randomness, settings: CookieSettings) {
  const secret = random.bytes(secretBytes).toString('base64url');
  // The signature saves the database from reads of made-up values.
  const value = `${secret}.${sign('access', secret, settings)}`;
  return { digest: digestOf(value), header: setCookie('access', value, { settings }) };
}

/** The cookie that identifies a user; undefined without one that this server has written. */
export function readAccessCookie(header: string, settings: CookieSettings): string | undefined {
  const value = readCookie(header, 'access', settings);
  const [, secret = '', signature = ''] = accessForm.exec(value ?? '') ?? [];
  return secret !== '' && isSignature(signature, sign('access', secret, settings)) ? value : undefined;
}

/** The secret of a browser that signs in. Tabs share it. */
export function readSignInSecret(header: string, settings: CookieSettings): string | undefined {
  const value = readCookie(header, 'sign-in', settings);
  return value !== undefined && secretForm.test(value) ? value : undefined;
}

export function createSignInSecret(random: Randomness): string {
  return random.bytes(secretBytes).toString('base64url');
}

export function setSignInCookie(secret: string, lifeMs: number, settings: CookieSettings): string {
  return setCookie('sign-in', secret, { settings, maxAgeSeconds: lifeMs / 1000 });
}

/** The form in which secrets of browsers, codes and cookies are stored and compared. */
export function digestOf(secret: string): string {
  return hash('sha256', secret, 'base64url');
}
