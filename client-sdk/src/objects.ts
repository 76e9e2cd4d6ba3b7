import { ConfigurationError } from './errors.ts';

/**
 * Copies arrays and plain objects with all that is in them, so that what a caller changes later changes nothing here. Everything else
 * (functions, keys, signals, instances of classes) is the same.
 */
export function copyPlain<T>(value: T): T {
  // The copy has the shape of the original.
  if (Array.isArray(value)) return value.map(copyPlain) as T;
  if (typeof value !== 'object' || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  // `fromEntries` makes `__proto__` a key like any other.
  const copy = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copyPlain(item)]));
  return (prototype === null ? Object.assign(Object.create(null), copy) : copy) as T;
}

/**
 * Writes a value as JSON. What JSON would drop or change without a word (a Map, a function, `undefined` in an array, NaN) is an error.
 * @throws {ConfigurationError} naming the member; never its value.
 */
export function strictJson(value: unknown, name: string): string {
  try {
    return JSON.stringify(value, refuseUnwritable);
  } catch (cause) {
    if (cause instanceof Unwritable) {
      const member = cause.key === '' ? name : `${name}: ${cause.key}`;
      throw new ConfigurationError(`\`${member}\` is ${cause.what}, which JSON cannot say`);
    }
    // Circular, a bigint, or a `toJSON` that throws.
    throw new ConfigurationError(`\`${name}\` cannot be written as JSON`, { cause });
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

/** Gets each value after its `toJSON`: dates and URLs are texts by then. */
function refuseUnwritable(this: unknown, key: string, value: unknown): unknown {
  const isDropped = typeof value === 'function' || typeof value === 'symbol';
  if (isDropped || (value === undefined && Array.isArray(this)))
    throw new Unwritable(key, String(typeof value));
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Unwritable(key, 'not a finite number');
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && !isPlainObject(value))
    throw new Unwritable(key, 'an object that is not plain');
  return value;
}

/** Whether an object is one of keys and values, and not of a class. */
export function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Whether a parsed value is an object with keys. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
