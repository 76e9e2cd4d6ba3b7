import type { Json, JsonObject } from '../domain/json.ts';
import { formatDefault } from './format.ts';

/**
 * A value of a template: JSON, whose numbers are float64 in Go; bigint for int; undefined for a key
 * that a map does not have, null for a nil value.
 */
export type Value = Json | bigint | undefined;

/** Says what keeps a template from being executed with these values. */
export class ExecutionError extends Error {
  override readonly name = 'ExecutionError';
}

export function isList(value: Value): value is readonly Json[] {
  return Array.isArray(value);
}

export function isMap(value: Value): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The member of a map; nothing that the object inherits. */
export function memberOf(map: JsonObject, key: string): Value {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}

/** Keys in the order of their UTF-8, as Go prints and ranges over maps. */
export function sortedKeys(map: JsonObject): readonly string[] {
  return Object.keys(map).toSorted((a, b) => (a < b ? -1 : Number(a > b)));
}

/** Whether a condition holds: anything but false, 0, nil and what is empty. */
export function isTrue(value: Value): boolean {
  if (isList(value)) return value.length > 0;
  if (isMap(value)) return Object.keys(value).length > 0;
  return Boolean(value);
}

/** What messages and `%T` call the type of a value. */
export function typeName(value: Value): string {
  if (value === undefined || value === null) return '<nil>';
  if (isList(value)) return '[]interface {}';
  if (isMap(value)) return 'map[string]interface {}';
  const names: Record<string, string> = { boolean: 'bool', number: 'float64', bigint: 'int' };
  return names[typeof value] ?? 'string';
}

/** Prints as Go's fmt.Sprint: with a space between two operands that are no strings. */
export function printAll(values: readonly Value[]): string {
  let text = '';
  for (const [index, value] of values.entries()) {
    const before = values[index - 1];
    if (index > 0 && typeof value !== 'string' && typeof before !== 'string') text += ' ';
    text += formatDefault(value);
  }
  return text;
}
