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
  const copy: Record<string, unknown> = Object.create(prototype);
  for (const [key, item] of Object.entries(value)) copy[key] = copyPlain(item);
  return copy as T;
}
