import { ConfigurationError } from './errors.ts';

/**
 * Copies arrays and plain objects recursively; other values (functions, keys, signals, class
 * instances) are shared.
 */
export function copyPlain<T>(value: T): T {
  // The copy has the type of the original.
  if (Array.isArray(value)) return value.map(copyPlain) as T;
  if (typeof value !== 'object' || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  // `fromEntries` makes `__proto__` an ordinary key.
  const copy = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copyPlain(item)]));
  return (prototype === null ? Object.assign(Object.create(null), copy) : copy) as T;
}

/** Documents of authorization servers have about five levels. */
const MAXIMUM_LEVELS = 100;

/** Whether parsed JSON has so many levels that recursion over them may exceed the stack. */
export function isTooDeep(document: unknown): boolean {
  const isParent = (value: unknown) => typeof value === 'object' && value !== null;
  let level = [document].filter(isParent);
  for (let levels = 0; level.length > 0; levels += 1) {
    if (levels > MAXIMUM_LEVELS) return true;
    // A set, because an object may be a member of many others.
    level = [...new Set(level.flatMap((value) => Object.values(value)))].filter(isParent);
  }
  return false;
}

/**
 * Serialises a value as JSON. Values that JSON would drop or change silently (a Map, a function,
 * `undefined` in an array, NaN) are errors.
 * @throws {ConfigurationError} naming the member, never its value.
 */
export function strictJson(value: unknown, name: string): string {
  try {
    return JSON.stringify(value, refuseUnwritable);
  } catch (cause) {
    if (cause instanceof Unwritable) {
      const member = cause.key === '' ? name : `${name}: ${cause.key}`;
      throw new ConfigurationError(`\`${member}\` is ${cause.what}, which JSON does not support`);
    }
    // Circular, a bigint, or a `toJSON` that throws.
    throw new ConfigurationError(`\`${name}\` cannot be serialised as JSON`, { cause });
  }
}

class Unwritable extends Error {
  readonly key: string;
  readonly what: string;
  constructor(key: string, what: string) {
    super();
    this.key = key;
    this.what = what;
  }
}

/** Called after `toJSON`, so that dates and URLs are strings. */
function refuseUnwritable(this: unknown, key: string, value: unknown): unknown {
  const isDropped = typeof value === 'function' || typeof value === 'symbol';
  if (isDropped || (value === undefined && Array.isArray(this)))
    throw new Unwritable(key, String(typeof value));
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Unwritable(key, 'not a finite number');
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && !isPlainObject(value))
    throw new Unwritable(key, 'an object that is not plain');
  return value;
}

/** Whether an object is not an instance of a class. */
export function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Whether a parsed value is an object with keys. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Makes inspection and JSON of an object show something else than its members, which may be
 * secrets. Copies, such as by spreading, show their members.
 */
export function printAs<T extends object>(object: T, shown: () => unknown): T {
  const hidden = { value: shown, configurable: true, writable: true };
  Object.defineProperty(object, 'toJSON', hidden);
  Object.defineProperty(object, Symbol.for('nodejs.util.inspect.custom'), hidden);
  return object;
}

/** Strings and nested values replaced by the label; numbers and booleans stay. */
export function withoutText(object: object, label: string): Record<string, unknown> {
  const entries = Object.entries(object);
  return Object.fromEntries(
    entries.map(([key, value]) => [key, typeof value === 'string' || isNested(value) ? label : value]),
  );
}

function isNested(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
