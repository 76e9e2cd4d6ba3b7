import { ConfigurationError } from '../errors.ts';
import type { ClientSettings } from '../settings.ts';
import { printable } from '../text.ts';

/**
 * Resolves a location: relative to the path of the site, to its host if it starts with `/`, or
 * absolute. A relative location never leaves the origin of the site, not even as `//host/path`.
 * @throws {ConfigurationError} if it is relative and there is no site, or the result is not an
 * http(s) URL.
 */
export function resolveUrl(site: string | undefined, location: string): string {
  return hasScheme(location) ? absolute(location, location) : absolute(joined(site, location), location);
}

/** Whether a location starts with a scheme, like absolute URLs. */
export function hasScheme(location: string): boolean {
  const colonAt = location.indexOf(':');
  return colonAt > 0 && /^[a-z][a-z0-9+.-]*$/i.test(location.slice(0, colonAt));
}

function joined(site: string | undefined, location: string): string {
  if (site === undefined) {
    throw new ConfigurationError(
      `\`${location}\` is relative: set the client's \`site\`, or give an absolute URL`,
    );
  }
  const base = plainSite.test(site) ? site : cleaned(site);
  const pathAt = base.indexOf('/', base.indexOf('//') + 2);
  const origin = pathAt < 0 ? base : base.slice(0, pathAt);
  // With the origin in front, no location (`//host`, `/\host`) can change the host.
  if (location.startsWith('/') || location.startsWith('\\')) return `${origin}${location}`;
  return base.endsWith('/') ? `${base}${location}` : `${base}/${location}`;
}

/** Sites that need no parsing: a scheme, a host, and possibly a path. */
const plainSite = /^https?:\/\/[^/?#@\\\s]+(?:\/[^?#@\\\s]*)?$/;

function cleaned(site: string): string {
  const { origin, pathname } = parsed(site, 'site');
  return `${origin}${pathname}`;
}

function absolute(url: string, location: string): string {
  const { href, protocol } = parsed(url, location);
  if (protocol !== 'https:' && protocol !== 'http:') {
    throw new ConfigurationError(`\`${protocol}\` is not http or https; give an http(s) URL`);
  }
  return href;
}

function parsed(url: string, what: string): URL {
  const result = URL.parse(url);
  if (result === null) throw new ConfigurationError(`\`${printable(what, 200)}\` is not a valid URL`);
  if (result.username !== '' || result.password !== '') {
    // The error of `fetch` would show the password.
    throw new ConfigurationError(
      `the URL of ${result.host} holds a user or password: give them as \`clientId\` and \`clientSecret\`, or in a header`,
    );
  }
  return result;
}

/**
 * Requires https, or a loopback address, for credentials and for metadata and keys that establish
 * trust.
 * @throws {ConfigurationError} unless `allowInsecure` is set.
 * @see RFC 6749 §1.6 https://www.rfc-editor.org/rfc/rfc6749#section-1.6
 * @see RFC 8414 §6.1 https://www.rfc-editor.org/rfc/rfc8414#section-6.1
 */
export function assertSecure(url: string, allowInsecure: boolean, what = 'credentials'): void {
  if (isSecure(url, allowInsecure)) return;
  throw new ConfigurationError(
    `${what} would be sent unencrypted, to or from ${new URL(url).origin}: use https, or set \`allowInsecure: true\` if the network is trusted`,
  );
}

/** Whether a normalised http(s) URL is https or loopback. */
export function isSecure(url: string, allowInsecure: boolean): boolean {
  return allowInsecure || url.startsWith('https:') || loopback.test(url);
}

/** For normalised URLs without credentials. Subdomains of localhost may be resolved by DNS. */
const loopback = /^http:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?\//;

/**
 * Restricts access tokens to the site, the authorization server and the listed origins.
 * @throws {ConfigurationError} for other origins.
 */
export function assertAllowed(url: string, { allowedOrigins, allowInsecure }: ClientSettings): void {
  assertSecure(url, allowInsecure);
  if (allowedOrigins === '*' || allowedOrigins.some((origin) => isUnder(url, origin))) return;
  const { origin } = new URL(url);
  throw new ConfigurationError(
    `access tokens are not sent to ${origin}: add it to the client's \`allowedOrigins\` if they should be`,
  );
}

/** In normalised URLs a slash follows the origin. */
function isUnder(url: string, origin: string): boolean {
  return url.startsWith(origin) && url[origin.length] === '/';
}
