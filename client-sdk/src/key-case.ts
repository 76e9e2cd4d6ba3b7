/**
 * Key conversion of parsed responses: snake_case, its types, and views that answer to both
 * spellings.
 *
 * @module keys
 */

import { isObject } from './objects.ts';

/** Any JSON value. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

/**
 * A JSON object. Those of responses have no prototype: `__proto__` and `constructor` are keys as
 * any other.
 */
export type JsonObject = { readonly [key: string]: JsonValue };

/**
 * Whether keys of parsed objects are converted to snake_case (`accessToken` to `access_token`) or
 * preserved.
 */
export type KeyCase = 'snake' | 'preserve';

/**
 * Converts a key to snake_case: `accessToken` to `access_token`, `HTTPServer` to `http_server`,
 * `a-b c` to `a_b_c`. Keys that are already in snake_case are returned unchanged.
 */
export function snakeCase(key: string): string {
  // `__proto__` would lose its underscores, and callers that filter it by name would miss it.
  return isSnakeCase(key) || key === '__proto__' ? key : convert(key);
}

/** Only lower-case letters, digits and single underscores: nearly every key of a token response. */
function isSnakeCase(key: string): boolean {
  return /^[a-z\d_]*$/.test(key) && !key.includes('__');
}

function convert(key: string): string {
  return (
    key
      .trim()
      .replaceAll(' ', '_')
      .replaceAll('::', '/')
      // Lookarounds keep this linear for a key of a million capitals.
      .replace(/(?<=[A-Z])(?=[A-Z][a-z])|(?<=[a-z\d])(?=[A-Z])/g, '_')
      .replaceAll('-', '_')
      .replace(/_+/g, '_')
      .toLowerCase()
  );
}

/**
 * A read-only view of a parsed object that answers to either spelling: `view.accessToken` and
 * `view.access_token` are the same. Nested objects are views as well. The object itself is not
 * copied.
 */
export function camelView<T extends object>(parsed: T): Readonly<Record<string, unknown>> & Readonly<T> {
  // The proxy answers to both spellings, which no type of the target can say.
  return new Proxy(parsed, {
    get: (target, key) => toView(Reflect.get(target, spelling(target, key))),
    has: (target, key) => Object.hasOwn(target, spelling(target, key)),
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
  }) as Readonly<Record<string, unknown>> & Readonly<T>;
}

function spelling(target: object, key: string | symbol): string | symbol {
  return typeof key === 'symbol' || Object.hasOwn(target, key) ? key : snakeCase(key);
}

function toView(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toView);
  return isObject(value) ? camelView(value) : value;
}

/** Changes values on their way, by key; the innermost first. */
export type ValueChange = (key: string, value: unknown) => unknown;

/**
 * Writes a parsed object as JSON text, empty entries of arrays (null, undefined) left out; `load`
 * reads it back.
 */
export function dump(parsed: unknown, change?: ValueChange): string {
  // A copy, because a token response prints no secrets.
  const members = isObject(parsed) ? { ...parsed } : parsed;
  return JSON.stringify(members, (key: string, value: unknown) => {
    const changed = change === undefined ? value : change(key, value);
    return Array.isArray(changed) ? changed.filter((item) => item !== null && item !== undefined) : changed;
  });
}

/**
 * Reads what `dump` wrote, into objects without prototype.
 * @throws {SyntaxError} if the text is not JSON.
 */
export function load(text: string, change?: ValueChange): unknown {
  return JSON.parse(text, (key: string, value: unknown) => {
    const plain = isObject(value) ? withoutPrototype(value) : value;
    return change === undefined ? plain : change(key, plain);
  });
}

function withoutPrototype(from: object): Record<string, unknown> {
  const to: Record<string, unknown> = Object.create(null);
  for (const [key, value] of Object.entries(from)) to[key] = value;
  return to;
}

/** The union of the characters of a string. */
type Chars<S extends string> = S extends `${infer C}${infer Rest}` ? C | Chars<Rest> : never;

type Upper = Chars<'ABCDEFGHIJKLMNOPQRSTUVWXYZ'>;
type Digit = Chars<'0123456789'>;
type Separator = '-' | ' ' | '_';

/** The state of the scan: what the last character was. */
type Last = 'start' | 'upper' | 'other' | 'separator';

/**
 * A capital begins a word after a small letter, and at the end of a run of capitals (`HTTPServer`).
 */
type Break<L extends Last, Next extends string> = L extends 'other'
  ? '_'
  : L extends 'upper'
    ? Next extends `${infer N}${string}`
      ? N extends Upper | Separator | Digit
        ? ''
        : '_'
      : ''
    : '';

type Scan<S extends string, L extends Last> = S extends `${infer C}${infer Rest}`
  ? C extends Separator
    ? L extends 'separator'
      ? Scan<Rest, 'separator'>
      : `_${Scan<Rest, 'separator'>}`
    : C extends Upper
      ? `${Break<L, Rest>}${Lowercase<C>}${Scan<Rest, 'upper'>}`
      : `${C}${Scan<Rest, 'other'>}`
  : '';

/** The type of a key in snake_case: `SnakeCase<'accessToken'>` is `'access_token'`. */
export type SnakeCase<S extends string> = string extends S ? string : Scan<S, 'start'>;

/**
 * The type of a parsed value whose keys were converted: `SnakeKeys<{ accessToken: string }>` has
 * `access_token`. Dates, which parsers may return, are values.
 */
export type SnakeKeys<T> = 0 extends 1 & T
  ? T
  : T extends ((...args: never) => unknown) | Date
    ? T
    : T extends readonly unknown[]
      ? { [Index in keyof T]: SnakeKeys<T[Index]> }
      : T extends object
        ? { [K in keyof T as K extends string ? SnakeCase<K> : K]: SnakeKeys<T[K]> }
        : T;

/** The type of a parsed value, after its keys were converted or preserved. */
export type ParsedKeys<T, Keys extends KeyCase> = Keys extends 'preserve' ? T : SnakeKeys<T>;
