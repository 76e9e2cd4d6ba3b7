import type { Json, JsonObject } from '../../users/user-json.ts';

/**
 * A value in a template: JSON (numbers are float64 in Go), bigint for int, undefined for a missing
 * map key, null for nil.
 */
export type Value = Json | bigint | undefined;

export function isList(value: Value): value is readonly Json[] {
  return Array.isArray(value);
}

export function isMap(value: Value): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Ignores inherited members of the object. */
export function getMember(map: JsonObject, key: string): Value {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}

/** In the order in which Go prints maps and ranges over them. */
export function sortedKeys(map: JsonObject): readonly string[] {
  return Object.keys(map).toSorted((a, b) => (a < b ? -1 : Number(a > b)));
}

/** Go's truth: false, 0, nil and empty values are false. */
export function isTrue(value: Value): boolean {
  if (isList(value)) return value.length > 0;
  if (isMap(value)) return Object.keys(value).length > 0;
  return Boolean(value);
}

/** Name of a type in error messages and for `%T`. */
export function typeName(value: Value): string {
  if (value === undefined || value === null) return '<nil>';
  if (isList(value)) return '[]interface {}';
  if (isMap(value)) return 'map[string]interface {}';
  const names: Record<string, string> = { boolean: 'bool', number: 'float64', bigint: 'int' };
  return names[typeof value] ?? 'string';
}
