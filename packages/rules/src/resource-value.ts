import { maxProblems } from './compile.ts';
import { editDistance } from './near-misses.ts';
import type { Location, RuleProblem } from './problem.ts';
import type { TextBounds } from './resource-shape.ts';

/** State of reading one manifest. */
export interface Reading {
  /** Label of the manifest for messages. */
  readonly source: string;
  readonly problems: RuleProblem[];
  /** Values that may still be read. */
  budget: number;
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
export const startReading = (source: string): Reading => ({ source, problems: [], budget: maxValues });

/** Reports a problem of a field. */
export function report({ source, problems }: Reading, field: string, message: string, hint?: string): void {
  if (problems.length >= maxProblems) return;
  const more = hint === undefined ? undefined : { hint };
  problems.push({ source, ...(field === '' ? undefined : { field }), path: field, message, ...more });
}

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

/** Reports every field that is not in a list. */
export function checkFields(mapping: Mapping, known: readonly string[]): void {
  for (const name of Object.keys(mapping.values)) {
    if (known.includes(name)) continue;
    report(mapping.read, fieldPath(mapping, shown(name)), 'unknown field', hintFor(name, known));
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

/** A value as shown in messages. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return `'${shown(value)}'`;
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return 'a date';
  return typeof value === 'object' && value !== null ? 'a mapping' : String(value);
}

/**
 * The end of a message about a value of the wrong type. A text of the `right` form only has quotes
 * too many.
 */
export function butFound(value: unknown, right: RegExp): string {
  if (typeof value !== 'string') return `not ${describeValue(value)}`;
  return right.test(value)
    ? `and ${describeValue(value)} is text: remove the quotes`
    : `not the text ${describeValue(value)}`;
}

/** Maximum length of a quoted text. */
const maxShown = 100;

const shown = (text: string) => (text.length > maxShown ? `${text.slice(0, maxShown)}…` : text);

function notText(value: unknown): string {
  const isScalar = typeof value !== 'object' || value instanceof Date;
  return `must be text, not ${describeValue(value)}${isScalar ? ': put it in quotes' : ''}`;
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

/** Maximum edit distance of a suggested field. */
const maxTypos = 2;

function hintFor(name: string, known: readonly string[]): string {
  const plain = bare(name);
  const same = known.find((field) => bare(field) === plain);
  if (same !== undefined) return `it is spelled ${same}`;
  const [nearest] = known
    .map((field) => ({ field, distance: editDistance(bare(field), plain) }))
    .filter(({ field, distance }) => distance <= maxTypos && distance < field.length / 2)
    .sort((a, b) => a.distance - b.distance);
  return nearest === undefined ? `known here: ${known.join(', ')}` : `did you mean ${nearest.field}?`;
}

/** A normalized name: `rate_limit`, `RateLimit` and `ratelimit` are equal. */
const bare = (name: string) => name.toLowerCase().replaceAll(/[_-]/g, '');

/** Where a descriptor is defined. */
export interface ResourceLocation {
  /** JSON path of its key and value: a descriptor, or an entry of a match. */
  readonly entry: string;
  /** JSON path of the parent of its `rateLimit`: the same descriptor, or a limit. */
  rule: string;
}

/** Locations of all descriptors of an object, by `at`. */
export type ResourceLocations = ResourceLocation[];

/** Location in a resource of a descriptor's field, named as in rule files. */
export function locateInResource({ entry, rule }: ResourceLocation, field: string | undefined): Location {
  switch (field) {
    case undefined:
      return { field: entry };
    case 'unit':
    case 'replaces':
      return { field: `${rule}.rateLimit.${field}` };
    case 'share_threshold':
      return { field: `${entry}.shareThreshold` };
    default:
      return { field: `${entry}.${field}` };
  }
}
