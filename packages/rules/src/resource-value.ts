import { maxProblems } from './compile.ts';
import { editDistance } from './near-misses.ts';
import type { Place, RuleProblem } from './problem.ts';
import type { TextBounds } from './resource-shape.ts';

/** The reading of one manifest. */
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
 * Most descriptors, match entries and metadata values of one object. More than etcd holds of any; YAML aliases of a file
 * can stand for more than any memory holds.
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

/** Accounts for reading a value; false once there are too many, which ends the reading and is reported once. */
export function charge(read: Reading, field: string): boolean {
  read.budget--;
  if (read.budget === 0)
    report(read, field, `from here on there are more than ${maxValues} values; split the object`);
  return read.budget > 0;
}

/** Path of a field in a mapping. */
export const fieldOf = ({ field }: Mapping, name: string): string =>
  field === '' ? name : `${field}.${name}`;

/** A value as a mapping, or undefined (reported). */
export function asMapping(read: Reading, field: string, value: unknown): Mapping | undefined {
  if (isMapping(value)) return { read, field, values: value };
  report(read, field, `must be a mapping, not ${nameOf(value)}`);
  return undefined;
}

/** The mapping in a field; undefined when absent or (reported) something else. */
export function mappingField(mapping: Mapping, name: string): Mapping | undefined {
  const value = mapping.values[name];
  return isAbsent(value) ? undefined : asMapping(mapping.read, fieldOf(mapping, name), value);
}

/** The list in a field; undefined when absent or (reported) too long or no list. */
export function listField(mapping: Mapping, name: string, maxItems: number): readonly unknown[] | undefined {
  const { read, values } = mapping;
  const value = values[name];
  if (isAbsent(value)) return undefined;
  if (!Array.isArray(value)) {
    report(read, fieldOf(mapping, name), `must be a list, not ${nameOf(value)}`);
    return undefined;
  }
  if (value.length <= maxItems) return value;
  report(read, fieldOf(mapping, name), `must have at most ${maxItems} items, not ${value.length}`);
  return undefined;
}

/** The text in a field; undefined when absent or (reported) not within its bounds. */
export function textField(mapping: Mapping, name: string, bounds: TextBounds): string | undefined {
  const { read, values } = mapping;
  const value = values[name];
  if (isAbsent(value)) return undefined;
  const message = typeof value === 'string' ? whatIsWrong(value, bounds) : notText(value);
  if (message === undefined) return value as string; // what is no text has a message
  report(read, fieldOf(mapping, name), message);
  return undefined;
}

/** The text in a field that must be there. */
export function requiredText(mapping: Mapping, name: string, bounds: TextBounds): string | undefined {
  if (isAbsent(mapping.values[name])) report(mapping.read, fieldOf(mapping, name), 'is required');
  return textField(mapping, name, bounds);
}

/** The boolean in a field; undefined when absent or (reported) something else. */
export function booleanField(mapping: Mapping, name: string): boolean | undefined {
  const value = mapping.values[name];
  if (typeof value === 'boolean') return value;
  if (!isAbsent(value))
    report(
      mapping.read,
      fieldOf(mapping, name),
      `must be true or false, ${butFound(value, /^(?:true|false)$/)}`,
    );
  return undefined;
}

/** Reports every field that is not in a list. */
export function checkFields(mapping: Mapping, known: readonly string[]): void {
  for (const name of Object.keys(mapping.values)) {
    if (known.includes(name)) continue;
    report(mapping.read, fieldOf(mapping, shown(name)), 'unknown field', hintFor(name, known));
  }
}

/** Whether a field is as good as not there: the API server drops a null too. */
export const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null;

/** Whether a value is a mapping, as JSON or YAML gives one: no list, no date, nothing of a class. */
export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** A value as a message calls it. */
export function nameOf(value: unknown): string {
  if (typeof value === 'string') return `'${shown(value)}'`;
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return 'a date';
  return typeof value === 'object' && value !== null ? 'a mapping' : String(value);
}

/** What there is instead of what must be. A text of the `right` form is one for its quotes alone, which people overlook. */
export function butFound(value: unknown, right: RegExp): string {
  if (typeof value !== 'string') return `not ${nameOf(value)}`;
  return right.test(value)
    ? `and ${nameOf(value)} is text: remove the quotes`
    : `not the text ${nameOf(value)}`;
}

/** Longest text quoted in a message. */
const maxShown = 100;

const shown = (text: string) => (text.length > maxShown ? `${text.slice(0, maxShown)}…` : text);

function notText(value: unknown): string {
  const isScalar = typeof value !== 'object' || value instanceof Date;
  return `must be text, not ${nameOf(value)}${isScalar ? ': put it in quotes' : ''}`;
}

function whatIsWrong(text: string, { min, max, pattern, form }: TextBounds): string | undefined {
  if (text.length < min) return 'must not be empty';
  if (!isAtMost(text, max)) return `must have at most ${max} characters`;
  if (pattern === undefined || pattern.test(text)) return undefined;
  return `'${shown(text)}' is not allowed: must be ${form ?? String(pattern)}`;
}

/** Counts characters as the API server does; nearly every text is short enough by its UTF-16 units already. */
function isAtMost(text: string, max: number): boolean {
  if (text.length <= max) return true;
  if (text.length > 2 * max) return false;
  let characters = 0;
  for (const _ of text) characters++;
  return characters <= max;
}

/** Most characters by which a known field may differ from what was meant to be it. */
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

/** A name without what its spellings differ in: `rate_limit`, `RateLimit` and `ratelimit` are one. */
const bare = (name: string) => name.toLowerCase().replaceAll(/[_-]/g, '');

/** Where one descriptor comes from. */
export interface ResourcePlace {
  /** JSON path of what has its key and value: a descriptor, or an entry of a match. */
  readonly entry: string;
  /** JSON path of what has its `rateLimit`: the same descriptor, or a limit. */
  rule: string;
}

/** The places of all descriptors of one object by their `at`. */
export type ResourcePlaces = ResourcePlace[];

/** Where a field of a descriptor, named as in rule files, is in a resource. */
export function locateInResource({ entry, rule }: ResourcePlace, field: string | undefined): Place {
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
