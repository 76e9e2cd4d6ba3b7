import type { TextBounds } from '@tollgate/rules/fields';
import {
  asMapping,
  booleanField,
  charge,
  checkFields,
  fieldPath,
  isAbsent,
  isMapping,
  listField,
  type Mapping,
  mappingField,
  textField,
} from '@tollgate/rules/resource-fields';
import { butFound, describeValue, report, shown } from '@tollgate/rules/resource-problems';
import type { Field, Fields } from '../definition/fields.ts';
import type { PartOf } from '../definition/spec.ts';

/**
 * Reads a part of an object by its table. Reports what is wrong with its path; the result is
 * complete only when nothing was reported.
 */
export function readPart<P extends Fields>(mapping: Mapping, fields: P): PartOf<P> {
  checkFields(mapping, Object.keys(fields));
  const part: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    if (isAbsent(mapping.values[name])) {
      if (field.required === true) report(mapping.read, fieldPath(mapping, name), 'is required');
      continue;
    }
    const value = readField(mapping, name, field);
    if (value !== undefined) part[name] = value;
  }
  return part as PartOf<P>; // the rows define the type
}

function readField(mapping: Mapping, name: string, field: Field): unknown {
  switch (field.kind) {
    case 'text':
      return textField(mapping, name, field.bounds);
    case 'texts':
      return readTexts(mapping, name, field);
    case 'choice':
      return readChoice(mapping, fieldPath(mapping, name), { value: mapping.values[name], ...field });
    case 'choices':
      return readItems(mapping, name, { maxItems: field.values.length }, (value, path) =>
        readChoice(mapping, path, { value, ...field }),
      );
    case 'flag':
      return booleanField(mapping, name);
    case 'count':
      return readCount(mapping, name, field);
    case 'part': {
      const part = mappingField(mapping, name);
      return part && readPart(part, field.fields);
    }
    case 'parts':
      if (isOverTotal(mapping, name, field.total)) return undefined;
      return readItems(mapping, name, field, (value, path) => readNested(mapping, path, { value, ...field }));
    case 'parts by name':
      return readByName(mapping, name, field);
    case 'attributes':
      return readItems(mapping, name, { maxItems: maxAttributes }, (value, path) =>
        readAttribute(mapping, path, { value, ...field }),
      );
  }
}

type PartsField = Extract<Field, { readonly kind: 'parts' }>;

/** Entries of a descriptor; each is a level of the rules of a limiter. */
const maxAttributes = 4;

function readTexts(
  mapping: Mapping,
  name: string,
  field: { readonly bounds: TextBounds; readonly maxItems: number; readonly mayBeEmpty?: true },
): readonly string[] | undefined {
  return readItems(mapping, name, field, (value, path) => readItemText(mapping, path, { value, ...field }));
}

/** The text at a path, which is no field of a mapping. */
function readItemText(
  { read }: Mapping,
  path: string,
  { value, bounds }: { readonly value: unknown; readonly bounds: TextBounds },
): string | undefined {
  return textField({ read, field: '', values: { [path]: value } }, path, bounds);
}

function isOverTotal(mapping: Mapping, name: string, total: PartsField['total']): boolean {
  const parts = mapping.values[name];
  if (total === undefined || !Array.isArray(parts)) return false;
  const lists = parts.map((part: unknown) => (isMapping(part) ? part[total.field] : undefined));
  const count = lists.reduce<number>((sum, list) => sum + (Array.isArray(list) ? list.length : 0), 0);
  if (count <= total.maxItems) return false;
  const message = `must have at most ${total.maxItems} ${total.field} together, not ${count}: use several policies, or a path prefix`;
  report(mapping.read, fieldPath(mapping, name), message);
  return true;
}

interface ItemsOptions {
  readonly maxItems: number;
  readonly mayBeEmpty?: true;
}

function readItems<T>(
  mapping: Mapping,
  name: string,
  { maxItems, mayBeEmpty }: ItemsOptions,
  readItem: (value: unknown, path: string) => T | undefined,
): readonly T[] | undefined {
  const items = listField(mapping, name, maxItems);
  const path = fieldPath(mapping, name);
  if (items?.length === 0 && mayBeEmpty !== true)
    report(mapping.read, path, 'must not be empty: leave it out instead');
  const seen = new Set<unknown>();
  return items?.flatMap((value, index) => {
    const itemPath = `${path}[${index}]`;
    if (!charge(mapping.read, itemPath)) return [];
    if (seen.has(value)) report(mapping.read, itemPath, `${describeValue(value)} is listed twice`);
    if (typeof value === 'string') seen.add(value);
    const item = readItem(value, itemPath);
    return item === undefined ? [] : [item];
  });
}

function readChoice(
  { read }: Mapping,
  path: string,
  { value, values }: { readonly value: unknown; readonly values: readonly string[] },
): string | undefined {
  const known = values.find((candidate) => candidate === value);
  if (known === undefined)
    report(read, path, `must be one of ${values.join(', ')}, not ${describeValue(value)}`);
  return known;
}

function readCount(
  mapping: Mapping,
  name: string,
  { min, max }: { readonly min: number; readonly max: number },
): number | undefined {
  const value = mapping.values[name];
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  const expected = `must be a whole number from ${min} to ${max}`;
  report(mapping.read, fieldPath(mapping, name), `${expected}, ${butFound(value, /^[0-9]+$/)}`);
  return undefined;
}

function readNested(
  { read }: Mapping,
  path: string,
  { value, fields }: { readonly value: unknown; readonly fields: Fields },
): unknown {
  const part = asMapping(read, path, value);
  return part && readPart(part, fields);
}

function readByName(
  mapping: Mapping,
  name: string,
  {
    fields,
    names,
    maxItems,
  }: { readonly fields: Fields; readonly names: TextBounds; readonly maxItems: number },
): ReadonlyMap<string, unknown> | undefined {
  const parts = mappingField(mapping, name);
  if (parts === undefined) return undefined;
  const entries = Object.entries(parts.values);
  if (entries.length > maxItems)
    report(parts.read, parts.field, `must have at most ${maxItems} entries, not ${entries.length}`);
  const byName = new Map<string, unknown>();
  for (const [key, value] of entries.slice(0, maxItems)) {
    const path = `${parts.field}.${shown(key)}`;
    if (readItemText(mapping, path, { value: key, bounds: names }) === undefined) continue;
    byName.set(key, readNested(mapping, path, { value, fields }));
  }
  return byName;
}

const headerName: TextBounds = {
  min: 1,
  max: 256,
  pattern: /^[a-z0-9!#$%&'*+\-.^_`|~]+$/,
  form: 'the name of a header in lower case',
};

/** The form of attributes that `claims` of the routes file add. */
const claimName: TextBounds = {
  min: 1,
  max: 63,
  pattern: /^[a-z][a-z0-9_]*$/,
  form: 'the name of an attribute: lower case letters, digits and _',
};

/** One of the values, `{ header: x-region }`, or `{ claim: department }`. */
function readAttribute(
  mapping: Mapping,
  path: string,
  { value, values }: { readonly value: unknown; readonly values: readonly string[] },
): unknown {
  const known = values.find((candidate) => candidate === value);
  if (known !== undefined) return known;
  if (!isMapping(value)) {
    const expected = `must be one of ${values.join(', ')}, { header: … } or { claim: … }`;
    report(mapping.read, path, `${expected}, not ${describeValue(value)}`);
    return undefined;
  }
  const part: Mapping = { read: mapping.read, field: path, values: value };
  if (isAbsent(value.claim))
    return readPart(part, { header: { kind: 'text', bounds: headerName, required: true, description: '' } });
  return readPart(part, { claim: { kind: 'text', bounds: claimName, required: true, description: '' } });
}
