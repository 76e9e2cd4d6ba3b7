import type { ArrayFormat } from '../client-options.ts';
import { ConfigurationError } from '../errors.ts';
import { isPlainObject, strictJson } from '../objects.ts';
import type { WireParams, WireValue } from './options.ts';

/** Names that specifications repeat when there are several. @see RFC 8707 §2, RFC 8693 §2.1 */
const repeatedNames = new Set(['resource', 'audience']);

type Pair = readonly [name: string, value: string];

/** Adds parameters to a URL's query; a name that is there already is replaced. Names come out sorted, spaces as `%20`. */
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

/** Writes pairs as a query: names sorted (equal ones keep their order), everything but letters, digits and `-._~` percent-encoded. */
export function queryString(pairs: readonly Pair[]): string {
  return pairs
    .toSorted(([a], [b]) => byUnits(baseName(a), baseName(b)))
    .map(([name, value]) =>
      value === '' && name.endsWith('[]') ? encode(name) : `${encode(name)}=${encode(value)}`,
    )
    .join('&');
}

/**
 * Turns parameters into pairs in their order. Null and undefined are left out; objects become `name[key]`.
 * @throws {ConfigurationError} for a null within an array or object, and for objects that are not plain: no text stands for them.
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

/** Writes parameters as a form, in their order. */
export function toForm(params: WireParams, format: ArrayFormat): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, value] of toPairs(params, format)) form.append(name, value);
  return form;
}

function addPairs(pairs: Pair[], name: string, value: WireValue, format: ArrayFormat): void {
  if (value === undefined || value === null) {
    throw new ConfigurationError(
      `\`${name}\` is ${value}, which a query or form cannot say: leave it out, or send JSON`,
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

/** A Date, a Map or an empty object has no keys to write, and would be lost without a word. */
function assertPlain(name: string, value: object): void {
  const isPlain = isPlainObject(value);
  if (isPlain && Object.keys(value).length > 0) return;
  throw new ConfigurationError(
    `\`${name}\` is ${isPlain ? 'an empty object' : 'an object that is not plain'}, which a query or form cannot say: give a text`,
  );
}

function isArray(value: WireValue): value is readonly WireValue[] {
  return Array.isArray(value);
}

/** Not by locale: the same everywhere. */
function byUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** `a` of `a`, `a[]` and `a[b]`: what replaces, and sorts, together. */
function baseName(name: string): string {
  const bracketAt = name.indexOf('[');
  return bracketAt <= 0 ? name : name.slice(0, bracketAt);
}

/** `encodeURIComponent`, and the five marks that it leaves. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Parameters whose several values are one text, separated by spaces. @see RFC 6749 §3.3, OpenID Connect Core §3.1.2.1 */
const spaceSeparated = new Set([
  'scope',
  'response_type',
  'prompt',
  'acr_values',
  'ui_locales',
  'claims_locales',
]);

/**
 * Parameters of a request to the authorization server as they are on the wire: lists that are one text are joined, and what holds an
 * object is JSON, such as `claims` and `authorization_details`. Null and undefined are left out.
 * @throws {ConfigurationError} for what JSON cannot hold.
 * @see OpenID Connect Core §5.5, RFC 9396 §2
 */
export function oauthParams(params: WireParams): WireParams {
  const written: Record<string, WireValue> = Object.create(null);
  for (const name of Object.keys(params)) {
    const value = params[name];
    if (value === undefined || value === null) continue;
    if (spaceSeparated.has(name) && Array.isArray(value)) {
      // No scope at all is said by leaving it out.
      if (value.length > 0) written[name] = joined(name, value);
    } else written[name] = holdsObject(value) ? json(name, value) : value;
  }
  return written;
}

function joined(name: string, values: readonly WireValue[]): string {
  if (values.every((value) => typeof value === 'string')) return values.join(' ');
  throw new ConfigurationError(`\`${name}\` must be a text or an array of texts`);
}

/** Whether a parameter has no form but JSON. */
function holdsObject(value: WireValue): boolean {
  if (Array.isArray(value)) return value.some((item) => typeof item === 'object' && item !== null);
  return typeof value === 'object' && value !== null;
}

/** A URL or a date has its text by `toJSON`, which is sent without quotes. */
function json(name: string, value: WireValue): string {
  const text = strictJson(value, name);
  return text.startsWith('"') ? String(JSON.parse(text)) : text;
}

/**
 * The parameters with their types, and what authentication added or changed.
 * @param written the parameters as a form has them.
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
