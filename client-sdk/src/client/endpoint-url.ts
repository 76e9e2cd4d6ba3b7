import { ConfigurationError } from '../errors/configuration-error.ts';
import { printable } from '../printable.ts';

/**
 * Makes a location absolute. Without a leading `/` it is under the site's path, with one under the host's root; an absolute URL is
 * taken as it is. What is relative never leaves the site's origin, not even as `//host/path`.
 * @throws {ConfigurationError} when it is relative and there is no site, or the result is not an http(s) URL.
 */
export function endpointUrl(site: string | undefined, location: string): string {
  return hasScheme(location) ? absolute(location, location) : absolute(joined(site, location), location);
}

/** Whether a location names a scheme of its own, as absolute URLs do. */
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
  // The origin written out in front: no spelling of the location (`//host`, `/\host`) can then name another.
  if (location.startsWith('/') || location.startsWith('\\')) return `${origin}${location}`;
  return base.endsWith('/') ? `${base}${location}` : `${base}/${location}`;
}

/** Sites that need no parsing to be taken apart: a scheme, a host, perhaps a path. */
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
    // `fetch` refuses it with an error that shows the password.
    throw new ConfigurationError(
      `the URL of ${result.host} holds a user or password: give them as \`clientId\` and \`clientSecret\`, or in a header`,
    );
  }
  return result;
}
