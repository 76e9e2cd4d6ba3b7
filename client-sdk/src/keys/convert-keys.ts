import type { KeyCase } from './key-case.ts';
import { snakeCase } from './snake-case.ts';

/** Objects nested deeper are left as they came: no honest answer is, and unbounded recursion would end in a stack overflow. */
const MAX_DEPTH = 100;

/** How the keys of a parsed value become those of the result. */
export type ConvertKeysOptions = {
  readonly keyCase: KeyCase;
  /** Told of a key that another one of the same object also became; the later value wins. */
  readonly onCollision?: ((key: string) => void) | undefined;
};

/**
 * Copies a parsed object into objects without prototype, so that `__proto__` and `constructor` are keys as any other; keys become
 * snake_case unless they are to be preserved. Values stay; objects in objects and in arrays are converted too.
 */
export function convertKeys(parsed: unknown, options: ConvertKeysOptions): unknown {
  return convertValue(parsed, options, 0);
}

/** Whether a parsed value is an object with keys. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function convertObject(
  from: Readonly<Record<string, unknown>>,
  options: ConvertKeysOptions,
  depth: number,
): Record<string, unknown> {
  const to: Record<string, unknown> = Object.create(null);
  const isSnake = options.keyCase === 'snake';
  for (const key of Object.keys(from)) {
    const converted = isSnake ? snakeCase(key) : key;
    if (options.onCollision !== undefined && converted in to) options.onCollision(converted);
    to[converted] = convertValue(from[key], options, depth);
  }
  return to;
}

function convertValue(value: unknown, options: ConvertKeysOptions, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth >= MAX_DEPTH) return value;
  if (Array.isArray(value)) return value.map((item) => convertValue(item, options, depth + 1));
  // Parsers of one's own may return dates or class instances: values, not keys and values.
  return isPlain(value) ? convertObject(value, options, depth + 1) : value;
}

function isPlain(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
