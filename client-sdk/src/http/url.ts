import type { ArrayFormat } from '../client-options.ts';
import { ConfigurationError } from '../errors.ts';
import { isPlainObject, strictJson } from '../objects.ts';
import type { ClientSettings } from '../settings.ts';
import { printable } from '../text.ts';
import type { WireParams, WireValue } from './options.ts';

/**
 * Resolves a location: relative to the path of the site, to its host if it starts with `/`, or
 * absolute. A relative location never leaves the origin of the site, not even as `//host/path`.
 * @throws {ConfigurationError} if it is relative and there is no site, or the result is not an
 * http(s) URL.
 */
export function resolveUrl(site: string | undefined, location: string): string {
  return hasScheme(location) ? absolute(location, location) : absolute(withSite(site, location), location);
}

/** Whether a location starts with a scheme, like absolute URLs. */
export function hasScheme(location: string): boolean {
  const colonAt = location.indexOf(':');
  return colonAt > 0 && /^[a-z][a-z0-9+.-]*$/i.test(location.slice(0, colonAt));
}

function withSite(site: string | undefined, location: string): string {
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

/** Expects a normalised URL without credentials. Subdomains of localhost may be resolved by DNS. */
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

/** Parameters that specifications require to be repeated. @see RFC 8707 §2, RFC 8693 §2.1 */
const repeatedNames = new Set(['resource', 'audience']);

type Pair = readonly [name: string, value: string];

/**
 * Adds parameters to a URL's query, replacing those of the same name. Names are sorted, spaces are
 * `%20`.
 */
export function withQuery(url: string, params: WireParams | URLSearchParams, format: ArrayFormat): string {
  const added = params instanceof URLSearchParams ? [...params] : toPairs(params, format);
  if (added.length === 0) return url;
  const hashAt = url.indexOf('#');
  const hash = hashAt < 0 ? '' : url.slice(hashAt);
  const bare = hashAt < 0 ? url : url.slice(0, hashAt);
  const queryAt = bare.indexOf('?');
  const path = queryAt < 0 ? bare : bare.slice(0, queryAt);
  const names = new Set(added.map(([name]) => baseName(name)));
  const kept =
    queryAt < 0
      ? []
      : [...new URLSearchParams(bare.slice(queryAt))].filter(([name]) => !names.has(baseName(name)));
  return `${path}?${queryString([...kept, ...added])}${hash}`;
}

/**
 * Encodes pairs as a query: names sorted (equal ones keep their order), everything but letters,
 * digits and `-._~` percent-encoded.
 */
export function queryString(pairs: readonly Pair[]): string {
  return pairs
    .toSorted(([a], [b]) => byUnits(baseName(a), baseName(b)))
    .map(([name, value]) =>
      value === '' && name.endsWith('[]') ? encode(name) : `${encode(name)}=${encode(value)}`,
    )
    .join('&');
}

/**
 * Converts parameters into pairs, in order. Null and undefined are omitted; objects become
 * `name[key]`.
 * @throws {ConfigurationError} for a null within an array or object, and for objects that are not
 * plain.
 */
function toPairs(params: WireParams, format: ArrayFormat): Pair[] {
  const pairs: Pair[] = [];
  for (const name of Object.keys(params)) {
    const value = params[name];
    if (value === undefined || value === null) continue;
    addPairs(pairs, name, value, repeatedNames.has(name) ? 'repeat' : format);
  }
  return pairs;
}

/** Encodes parameters as a form, in order. */
export function toForm(params: WireParams, format: ArrayFormat): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, value] of toPairs(params, format)) form.append(name, value);
  return form;
}

function addPairs(pairs: Pair[], name: string, value: WireValue, format: ArrayFormat): void {
  if (value === undefined || value === null) {
    throw new ConfigurationError(
      `\`${name}\` is ${value}, which queries and forms do not support: omit it, or send JSON`,
    );
  }
  if (isArray(value)) {
    const itemName = format === 'repeat' ? name : `${name}[]`;
    if (value.length === 0 && format === 'brackets') pairs.push([itemName, '']);
    for (const item of value) addPairs(pairs, itemName, item, format);
  } else if (typeof value === 'object') {
    assertPlain(name, value);
    for (const key of Object.keys(value).sort(byUnits))
      addPairs(pairs, `${name}[${key}]`, value[key], format);
  } else {
    pairs.push([name, String(value)]);
  }
}

/** A Date, a Map or an empty object has no keys and would be lost silently. */
function assertPlain(name: string, value: object): void {
  const isPlain = isPlainObject(value);
  if (isPlain && Object.keys(value).length > 0) return;
  throw new ConfigurationError(
    `\`${name}\` is ${isPlain ? 'an empty object' : 'an object that is not plain'}, which queries and forms do not support: use a string`,
  );
}

function isArray(value: WireValue): value is readonly WireValue[] {
  return Array.isArray(value);
}

/** Independent of the locale. */
function byUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** `a` of `a`, `a[]` and `a[b]`, which are replaced and sorted together. */
function baseName(name: string): string {
  const bracketAt = name.indexOf('[');
  return bracketAt <= 0 ? name : name.slice(0, bracketAt);
}

/** Also encodes the characters that `encodeURIComponent` leaves. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/**
 * Parameters whose values are separated by spaces.
 * @see RFC 6749 §3.3, OpenID Connect Core §3.1.2.1
 */
const spaceSeparated = new Set([
  'scope',
  'response_type',
  'prompt',
  'acr_values',
  'ui_locales',
  'claims_locales',
]);

/**
 * Parameters as they are sent to the authorization server: lists are joined, and values that
 * contain objects, such as `claims` and `authorization_details`, are JSON. Null and undefined are
 * omitted.
 * @throws {ConfigurationError} for values that JSON does not support.
 * @see OpenID Connect Core §5.5, RFC 9396 §2
 */
export function oauthParams(params: WireParams): WireParams {
  const written: Record<string, WireValue> = Object.create(null);
  for (const name of Object.keys(params)) {
    const value = params[name];
    if (value === undefined || value === null) continue;
    if (spaceSeparated.has(name) && Array.isArray(value)) {
      // An empty scope is omitted.
      if (value.length > 0) written[name] = spaceJoined(name, value);
    } else written[name] = holdsObject(value) ? json(name, value) : value;
  }
  return written;
}

function spaceJoined(name: string, values: readonly WireValue[]): string {
  if (values.every((value) => typeof value === 'string')) return values.join(' ');
  throw new ConfigurationError(`\`${name}\` must be a text or an array of texts`);
}

/** Whether a parameter can only be sent as JSON. */
function holdsObject(value: WireValue): boolean {
  if (Array.isArray(value)) return value.some((item) => typeof item === 'object' && item !== null);
  return typeof value === 'object' && value !== null;
}

/** URLs and dates have a `toJSON` that returns a string, which is sent without quotes. */
function json(name: string, value: WireValue): string {
  const text = strictJson(value, name);
  return text.startsWith('"') ? String(JSON.parse(text)) : text;
}

/**
 * The parameters with their types, merged with what authentication added or changed.
 * @param written the parameters as they are in a form.
 */
export function jsonParams(params: WireParams, written: WireParams, body: URLSearchParams): WireParams {
  const all: Record<string, WireValue> = Object.create(null);
  for (const name of Object.keys(written))
    all[name] = holdsObject(params[name]) ? params[name] : written[name];
  for (const [name, value] of body) {
    const before = all[name.endsWith('[]') ? name.slice(0, -2) : name];
    if (typeof before !== 'object' && String(before) !== value) all[name] = value;
  }
  return all;
}
