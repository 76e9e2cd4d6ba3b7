import { maxProblems } from '../compile/compile.ts';
import type { Location } from '../definition/problem.ts';
import { resourceFields } from '../definition/resource-shape.ts';
import { type FieldName, resourceSpelling } from '../definition/spelling.ts';
import { editDistance } from '../match/near-misses.ts';
import type { Reading } from './resource-fields.ts';

/** Reports a problem of a field. */
export function report({ source, problems }: Reading, field: string, message: string, hint?: string): void {
  if (problems.length >= maxProblems) return;
  const more = hint === undefined ? undefined : { hint };
  problems.push({ source, ...(field === '' ? undefined : { field }), path: field, message, ...more });
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

export const shown = (text: string) => (text.length > maxShown ? `${text.slice(0, maxShown)}…` : text);

export function notText(value: unknown): string {
  const isScalar = typeof value !== 'object' || value instanceof Date;
  return `must be text, not ${describeValue(value)}${isScalar ? ': put it in quotes' : ''}`;
}

/** Maximum edit distance of a suggested field. */
const maxTypos = 2;

/** A hint about a field that is not known at its place, by its normalized name. */
export type FindPlace = (plain: string, known: readonly string[]) => string | undefined;

export function hintFor(name: string, known: readonly string[], findPlace: FindPlace): string {
  const plain = bare(name);
  const same = known.find((field) => bare(field) === plain);
  if (same !== undefined) return `it is spelled ${same}`;
  const place = findPlace(plain, known);
  if (place !== undefined) return place;
  const [nearest] = known
    .map((field) => ({ field, distance: editDistance(bare(field), plain) }))
    .filter(({ field, distance }) => distance <= maxTypos && distance < field.length / 2)
    .sort((a, b) => a.distance - b.distance);
  return nearest === undefined ? `known here: ${known.join(', ')}` : `did you mean ${nearest.field}?`;
}

/** Other words for a field. */
const synonyms: Readonly<Record<string, string>> = {
  shadow: 'shadowMode',
  quota: 'quotaMode',
  limit: 'rateLimit',
  limits: 'rateLimit',
  requests: 'requestsPerUnit',
  window: 'period',
  duration: 'period',
};

/** The field that another word stands for, or the part that a field belongs to. */
export function findRulePlace(plain: string, known: readonly string[]): string | undefined {
  const meant = synonyms[plain];
  if (meant !== undefined && known.includes(meant)) return `did you mean ${meant}?`;
  const belongsTo = (fields: readonly string[]) => fields.some((field) => bare(field) === plain);
  if (known.includes('match') && belongsTo(resourceFields.match)) return 'it belongs in an entry of match';
  if (known.includes('rateLimit') && belongsTo(resourceFields.rateLimit)) return 'it belongs in rateLimit';
  if (known.includes('replaces') && belongsTo(resourceFields.limit)) return 'it belongs beside rateLimit';
  return undefined;
}

/** A normalized name: `rate_limit`, `RateLimit` and `ratelimit` are equal. */
const bare = (name: string) => name.toLowerCase().replaceAll(/[_-]/g, '');

/** Where a descriptor is defined. */
export interface ResourceLocation {
  /** JSON path of its key and value: a descriptor, or an entry of a match. */
  readonly entry: string;
  /** JSON path of the parent of its `rateLimit`: the same descriptor or a limit. */
  rule: string | undefined;
}

/** Locations of all descriptors of an object, by `at`. */
export type ResourceLocations = ResourceLocation[];

/** Location in a resource of a field of the spec, a descriptor or its limit. */
export function locateInResource({ entry, rule }: ResourceLocation, field: FieldName | undefined): Location {
  if (field === undefined) return { field: entry };
  const name = resourceSpelling[field];
  const isOfLimit = resourceFields.limitRateLimit.some((known) => known === name);
  return { field: rule !== undefined && isOfLimit ? `${rule}.rateLimit.${name}` : `${entry}.${name}` };
}
