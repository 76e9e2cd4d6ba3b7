import type { TextBounds } from '../definition/fields.ts';
import type { RuleProblem } from '../definition/problem.ts';
import { resourceTexts, type Values } from '../definition/values.ts';
import {
  butFound,
  describeValue,
  type FindPlace,
  hintFor,
  notText,
  report,
  shown,
} from './resource-problems.ts';

/** State of reading one manifest. */
export interface Reading {
  /** Label of the manifest for messages. */
  readonly source: string;
  readonly problems: RuleProblem[];
  /** Values that may still be read. */
  budget: number;
  /** Says where a field belongs, or what it is called, by its normalized name. */
  readonly findPlace: FindPlace;
}

/** A mapping of a manifest and its JSON path. */
export interface Mapping {
  readonly read: Reading;
  /** Empty for the manifest itself. */
  readonly field: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/**
 * Maximum number of descriptors, match entries and metadata values per object: more than an object
 * in etcd can have. YAML aliases of a file can expand to more than any memory holds.
 */
const maxValues = 1_000_000;

/** Begins to read a manifest. */
export const startReading = (source: string, findPlace: FindPlace): Reading => ({
  source,
  problems: [],
  budget: maxValues,
  findPlace,
});

/** Counts a value; false once there are too many, which is reported once and ends the reading. */
export function charge(read: Reading, field: string): boolean {
  read.budget--;
  if (read.budget === 0) report(read, field, `the object has more than ${maxValues} values; split it`);
  return read.budget > 0;
}

/** Path of a field in a mapping. */
export const fieldPath = ({ field }: Mapping, name: string): string =>
  field === '' ? name : `${field}.${name}`;

/** A value as a mapping, or undefined (reported). */
export function asMapping(read: Reading, field: string, value: unknown): Mapping | undefined {
  if (isMapping(value)) return { read, field, values: value };
  report(read, field, `must be a mapping, not ${describeValue(value)}`);
  return undefined;
}

/** The mapping in a field; undefined when absent or (reported) something else. */
export function mappingField(mapping: Mapping, name: string): Mapping | undefined {
  const value = mapping.values[name];
  return isAbsent(value) ? undefined : asMapping(mapping.read, fieldPath(mapping, name), value);
}

/** The list in a field; undefined when absent or (reported) too long or no list. */
export function listField(mapping: Mapping, name: string, maxItems: number): readonly unknown[] | undefined {
  const { read, values } = mapping;
  const value = values[name];
  if (isAbsent(value)) return undefined;
  if (!Array.isArray(value)) {
    report(read, fieldPath(mapping, name), `must be a list, not ${describeValue(value)}`);
    return undefined;
  }
  if (value.length <= maxItems) return value;
  report(read, fieldPath(mapping, name), `must have at most ${maxItems} items, not ${value.length}`);
  return undefined;
}

/** The text in a field; undefined when absent or (reported) not within its bounds. */
export function textField(mapping: Mapping, name: string, bounds: TextBounds): string | undefined {
  const { read, values } = mapping;
  const value = values[name];
  if (isAbsent(value)) return undefined;
  const message = typeof value === 'string' ? whatIsWrong(value, bounds) : notText(value);
  if (message === undefined) return value as string; // what is no text has a message
  report(read, fieldPath(mapping, name), message);
  return undefined;
}

/** The text in a required field. */
export function requiredText(mapping: Mapping, name: string, bounds: TextBounds): string | undefined {
  if (isAbsent(mapping.values[name])) report(mapping.read, fieldPath(mapping, name), 'is required');
  return textField(mapping, name, bounds);
}

/** The boolean in a field; undefined when absent or (reported) something else. */
export function booleanField(mapping: Mapping, name: string): boolean | undefined {
  const value = mapping.values[name];
  if (typeof value === 'boolean') return value;
  if (!isAbsent(value))
    report(
      mapping.read,
      fieldPath(mapping, name),
      `must be true or false, ${butFound(value, /^(?:true|false)$/)}`,
    );
  return undefined;
}

/** The text that rule files have for one of the `values` of Kubernetes. */
export function enumField(mapping: Mapping, name: string, values: Values): string | undefined {
  const value = mapping.values[name];
  if (isAbsent(value)) return undefined;
  const known = Object.entries(values).find(([, { resource }]) => resource === value);
  if (known !== undefined) return known[0];
  const names = resourceTexts(values).join(', ');
  report(mapping.read, fieldPath(mapping, name), `must be one of ${names}, not ${describeValue(value)}`);
  return undefined;
}

/** Reports every field that is not in a list. */
export function checkFields(mapping: Mapping, known: readonly string[]): void {
  for (const name of Object.keys(mapping.values)) {
    if (known.includes(name)) continue;
    report(
      mapping.read,
      fieldPath(mapping, shown(name)),
      'unknown field',
      hintFor(name, known, mapping.read.findPlace),
    );
  }
}

/** Whether a field is absent or null, which the API server drops. */
export const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null;

/** Whether a value is a plain object, as JSON or YAML parsers create it. */
export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function whatIsWrong(text: string, { min, max, pattern, form }: TextBounds): string | undefined {
  if (text.length < min) return 'must not be empty';
  if (!isAtMost(text, max)) return `must have at most ${max} characters`;
  if (pattern === undefined || pattern.test(text)) return undefined;
  return `'${shown(text)}' is not allowed: must be ${form ?? String(pattern)}`;
}

/** Counts characters as the API server does; most texts are short enough by their UTF-16 units. */
function isAtMost(text: string, max: number): boolean {
  if (text.length <= max) return true;
  if (text.length > 2 * max) return false;
  let characters = 0;
  for (const _ of text) characters++;
  return characters <= max;
}
