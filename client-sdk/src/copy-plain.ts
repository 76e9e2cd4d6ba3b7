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
